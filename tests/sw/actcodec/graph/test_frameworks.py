"""Trainers and adapters around compiled models: values are coded, with losses near those of the trainer's own compilation."""

from __future__ import annotations

import actcodec
import pytest
import torch
from graph_steps import found
from torch import Tensor, nn
from torch.nn import functional as F

pytestmark = pytest.mark.usefixtures("graphs")
WIDTH, STEPS = 128, 3


class Network(nn.Module):
    """A network that returns a loss when it is given labels, as transformers' Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 8))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Tensor | dict[str, Tensor]:
        """Return logits (N, 8), or with labels a loss beside them."""
        logits = self.layers(x)
        return logits if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def rows() -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(5)
    return [{"x": torch.randn(WIDTH, generator=random), "labels": torch.tensor(place % 8)} for place in range(STEPS * 64)]


def check(make, steps, part):
    """Compare losses with those of a trainer that compiles the model alone; the first one has equal weights."""
    exact, got = found(make, steps, None, part), found(make, steps, "int8", part)
    assert exact.coded == 0 < got.coded
    assert len(got.losses) == len(exact.losses) >= STEPS
    torch.testing.assert_close(got.losses[0], exact.losses[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(got.losses, exact.losses, rtol=2e-3, atol=0)


@pytest.mark.parametrize(("part", "compiles"), [("model", False), ("model", True), ("layers", True)])
def test_transformers_trainer(transformers, tmp_path, compiles, part):
    """The Trainer compiles, or does not, a model that is compiled, or has a part that is."""
    pytest.importorskip("accelerate", reason="needs accelerate: pip install 'actcodec[frameworks]'")
    transformers.logging.set_verbosity_error()

    def steps(model: nn.Module) -> list[Tensor]:
        arguments = transformers.TrainingArguments(
            str(tmp_path),
            **{"max_steps": STEPS, "per_device_train_batch_size": 64, "logging_steps": 1, "learning_rate": 0.01, "seed": 3},
            **{"report_to": "none", "use_cpu": True, "disable_tqdm": True, "save_steps": 2, "torch_compile": compiles},
        )
        trainer = transformers.Trainer(
            getattr(model, "_orig_mod", model), arguments, train_dataset=rows(), eval_dataset=rows()[:64]
        )
        trainer.train()
        losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
        return [torch.tensor(loss) for loss in (*losses, trainer.evaluate()["eval_loss"])]

    check(Network, steps, lambda model: model if part == "model" else model.layers)


@pytest.mark.filterwarnings("ignore::UserWarning:lightning", "ignore:.*LeafSpec.*")
@pytest.mark.parametrize(("part", "compiles"), [("module", False), ("module", True), ("layers", True)])
def test_lightning(torchvision, tmp_path, compiles, part):
    """The module that Lightning trains is compiled, or is not; it is compiled by itself, or has a part that is."""
    pl = pytest.importorskip("lightning.pytorch", reason="needs lightning: pip install 'actcodec[frameworks]'")

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.losses = Network().layers, []

        def forward(self, x):
            return self.layers(x)

        def training_step(self, batch, number):
            loss = F.cross_entropy(self(batch["x"]), batch["labels"])
            self.losses.append(loss.detach())
            return loss

        def validation_step(self, batch, number):
            F.cross_entropy(self(batch["x"]), batch["labels"])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def steps(model: nn.Module) -> list[Tensor]:
        module = getattr(model, "_orig_mod", model)
        loader = torch.utils.data.DataLoader(rows(), batch_size=64)
        trainer = pl.Trainer(
            default_root_dir=tmp_path,
            **{"max_epochs": 1, "accelerator": "cpu", "logger": False, "enable_progress_bar": False},
            **{"enable_model_summary": False, "enable_checkpointing": False},
        )
        trainer.fit(torch.compile(module) if compiles else module, loader, loader)
        return module.losses

    check(Module, steps, lambda model: model if part == "module" else model.layers)


def test_adapters_of_peft(transformers):
    """LoRA: the weights of the model have no gradient, those of the adapters do."""
    peft = pytest.importorskip("peft", reason="needs peft, which no extra installs")

    def make() -> nn.Module:
        return peft.get_peft_model(Network(), peft.LoraConfig(r=4, target_modules=["layers.0", "layers.2"]))

    def steps(model: nn.Module) -> list[Tensor]:
        batch = torch.utils.data.default_collate(rows()[:64])
        losses = []
        for _ in range(STEPS):
            losses.append(model(**batch)["loss"])
            losses[-1].backward()
        return losses

    check(make, steps, lambda model: model)
    model = make()
    actcodec.compiled(model)
    model(**torch.utils.data.default_collate(rows()[:64]))["loss"].backward()
    assert {
        name.rpartition(".default")[0].rpartition(".")[2] for name, p in model.named_parameters() if p.grad is not None
    } == {
        "lora_A",
        "lora_B",
    }
