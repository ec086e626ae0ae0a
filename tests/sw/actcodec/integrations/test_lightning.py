"""The callback for Lightning: compressed tensors, end of compression, logs, and resumed runs."""

import subprocess
import sys
import warnings

import actcodec
import pytest
import torch
from actcodec.training import policy, policy_options
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional as F

BATCHES, EPOCHS, BREAK = 3, 2, 4
STEPS = BATCHES * EPOCHS

#: Lightning's own classes of warnings, which a process of pytest-xdist could not import, and what torch says of its own.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:lightning", "ignore:You defined a", "ignore:.*LeafSpec.*")


@pytest.fixture(scope="module")
def pl(torchvision):
    """Lightning, whose metrics import torchvision where that is installed."""
    return pytest.importorskip("lightning.pytorch", reason="needs lightning: pip install 'actcodec[frameworks]'")


@pytest.fixture
def callback(pl):
    from actcodec.integrations.lightning import CompressionCallback

    return CompressionCallback


def hooked():
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


@pytest.fixture
def module(pl):
    """A function that makes a module which notes, of every forward pass, whether it trains and whether it is compressed."""

    class Module(pl.LightningModule):
        def __init__(self, manual=False):
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 4)
            )
            self.automatic_optimization = not manual
            self.passes, self.losses, self.fails_at, self.backward_hooked = [], [], None, []

        def training_step(self, batch, number):
            if len(self.losses) == self.fails_at:
                raise RuntimeError("mine")
            loss = self._loss(batch)
            if not self.automatic_optimization:
                optimizer = self.optimizers()
                for part in (loss, lambda: self._loss(batch)):
                    optimizer.zero_grad()
                    self.manual_backward(part if torch.is_tensor(part) else part())
                    optimizer.step()
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, number):
            self._loss(batch)

        def _loss(self, batch):
            self.passes.append((self.training, hooked()))
            return F.cross_entropy(self.layers(batch[0]), batch[1])

        def on_after_backward(self):
            self.backward_hooked.append(hooked())

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    return Module


def loader():
    random = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(24, 3, 8, 8, generator=random), torch.arange(24) % 4)
    return torch.utils.data.DataLoader(data, batch_size=24 // BATCHES)


class Resumable:
    """Batches that Lightning finds again in the middle of an epoch, as it does not those of a plain loader."""

    def __init__(self):
        self.batches, self.place = list(loader()), 0

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        self.place %= len(self.batches)
        while self.place < len(self.batches):
            self.place += 1
            yield self.batches[self.place - 1]

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


def trainer(pl, folder, *callbacks, **arguments):
    settings = {
        **{"max_epochs": EPOCHS, "accelerator": "cpu", "logger": False, "log_every_n_steps": 1, "num_sanity_val_steps": 1},
        **{"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False},
    }
    return pl.Trainer(default_root_dir=folder, callbacks=list(callbacks), **settings | arguments)


def test_training_is_compressed_and_validation_is_not(pl, callback, module, tmp_path):
    mine, model = callback("sfpr", exclude="layers.4"), module()
    done = trainer(pl, tmp_path, mine, val_check_interval=1)
    done.fit(model, loader(), loader())
    assert model.passes.count((True, True)) == STEPS
    assert model.passes.count((False, False)) == 1 + STEPS * BATCHES
    assert len(model.passes) == 1 + STEPS + STEPS * BATCHES
    assert float(done.callback_metrics["ratio_of_everything"]) == pytest.approx(mine.statistics.ratio_of_everything)
    assert {row["codec"] for row in mine.statistics.tensors if row["name"] == "layers.0"} == {"sfpr"}
    assert {row["codec"] for row in mine.statistics.tensors if row["name"] == "layers.4"} <= {"exact", "brc"}


def test_the_ratio_is_in_the_log(pl, callback, module, tmp_path):
    logger = pl.loggers.CSVLogger(tmp_path)
    trainer(pl, tmp_path, callback("sfpr"), logger=logger).fit(module(), loader())
    header, *rows = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text().splitlines()
    place = header.split(",").index("ratio_of_everything")
    assert len(rows) == STEPS
    assert all(2 < float(row.split(",")[place]) < 5 for row in rows)


def test_gradients_are_those_of_the_context(pl, callback, module, tmp_path):
    """Three batches accumulated, against a loop with the context by hand: the same bits."""
    found = []

    class Watching(pl.Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            found.append([p.grad.clone() for p in pl_module.parameters()])

    trainer(pl, tmp_path, callback("actnn"), Watching(), accumulate_grad_batches=BATCHES, max_epochs=1).fit(module(), loader())
    model = module()
    compression = actcodec.compress_activations(model, "actnn")
    for x, labels in loader():
        with compression:
            loss = F.cross_entropy(model.layers(x), labels) / BATCHES
        loss.backward()
    assert len(found) == 1
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), found[0], strict=True))


def test_the_backward_pass_is_outside(pl, callback, module, tmp_path):
    model = module()
    trainer(pl, tmp_path, callback("sfpr")).fit(model, loader())
    assert model.backward_hooked == [False] * STEPS
    assert not hooked()


def test_manual_optimization(pl, callback, module, tmp_path):
    """Two losses for each batch, a backward pass for each: both forward passes are compressed."""
    model = module(manual=True)
    trainer(pl, tmp_path, callback("sfpr")).fit(model, loader())
    assert model.passes == [(True, True)] * 2 * STEPS
    assert not hooked()


@pytest.mark.parametrize("name", ["actnn", "jpeg-act", "actnn-L3", "autoquant", "auto", "jpeg-gmc"])
@pytest.mark.parametrize("end", ["part of an epoch", "epoch"])
def test_a_run_that_is_gone_on_with_has_the_same_bits(pl, callback, module, tmp_path, name, end):
    options = {"interval": 2} if "interval" in policy_options(name) else {}
    options |= {"dqt": "optLH"} if name == "jpeg-act" else {}
    every = {"every_n_train_steps": BREAK} if end == "part of an epoch" else {"every_n_epochs": 1}
    saved = pl.callbacks.ModelCheckpoint(tmp_path, save_top_k=-1, filename="{step}", **every)
    steps = BREAK if end == "part of an epoch" else BATCHES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # auto cannot reach its goal
        whole, part = module(), module()
        trainer(pl, tmp_path, callback(name, **options), saved, enable_checkpointing=True).fit(whole, Resumable())
        trainer(pl, tmp_path, callback(name, **options)).fit(part, Resumable(), ckpt_path=tmp_path / f"step={steps}.ckpt")
    assert whole.losses[steps:] == part.losses
    assert len(part.losses) == STEPS - steps
    assert all(torch.equal(a, b) for a, b in zip(part.parameters(), whole.parameters(), strict=True))


def test_a_checkpoint_of_another_policy_is_refused(pl, callback, module, tmp_path):
    done = trainer(pl, tmp_path, callback("actnn"))
    done.fit(module(), loader())
    done.save_checkpoint(tmp_path / "run.ckpt")
    with pytest.raises(UserError, match="load it into a policy of the name and the options"):
        trainer(pl, tmp_path, callback("sfpr"), max_epochs=3).fit(module(), loader(), ckpt_path=tmp_path / "run.ckpt")


def test_an_exception_ends_the_context(pl, callback, module, tmp_path):
    model, mine = module(), callback("sfpr")
    model.fails_at = 2
    with pytest.raises(RuntimeError, match="mine"):
        trainer(pl, tmp_path, mine).fit(model, loader())
    assert not hooked()
    again = module()
    trainer(pl, tmp_path, mine).fit(again, loader())
    assert again.passes == [(True, True)] * STEPS


def test_an_epoch_that_is_cut_short_ends_the_context(pl, callback, module, tmp_path):
    model = module()
    model.on_train_batch_start = lambda batch, number: -1 if number == 1 else None
    trainer(pl, tmp_path, callback("sfpr")).fit(model, loader(), loader())
    assert [compressed for training, compressed in model.passes if training] == [True] * EPOCHS
    assert not any(compressed for training, compressed in model.passes if not training)
    assert not hooked()


def test_epochs_come_to_the_policy(pl, callback, module, tmp_path):
    heard = []
    mine = policy("jpeg-act", dqt="optLH")
    mine.set_epoch = heard.append
    trainer(pl, tmp_path, callback(mine)).fit(module(), loader())
    assert heard == [0, 1]


def test_a_compiled_module_is_trained_operation_by_operation(pl, callback, module, tmp_path):
    plain, compiled = module(), module()
    trainer(pl, tmp_path, callback("actnn")).fit(plain, loader())
    with pytest.warns(UserWarning, match="runs operation by operation"):
        trainer(pl, tmp_path, callback("actnn")).fit(torch.compile(compiled, backend="eager"), loader())
    assert compiled.losses == plain.losses


def test_it_is_of_the_package_that_the_program_uses(pl):
    """The other Lightning; the callback, which is imported after it, does not import the first one."""
    pytest.importorskip("pytorch_lightning")
    program = (
        "from actcodec.study.models import library; library.torchvision(); import sys\n"
        "import pytorch_lightning as pl\n"
        "from actcodec.integrations.lightning import CompressionCallback\n"
        "print(issubclass(CompressionCallback, pl.Callback), 'lightning' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize("name", ["transformers", "lightning"])
def test_what_is_missing_is_said(name):
    """As where neither is installed."""
    program = (
        "import importlib.util; real, gone = importlib.util.find_spec, ('transformers', 'lightning', 'pytorch_lightning')\n"
        "importlib.util.find_spec = lambda name, *a: None if name in gone else real(name, *a)\n"
        "from cdu_tools.errors import MissingToolError\n"
        f"try: import actcodec.integrations.{name}\n"
        "except MissingToolError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    said = f"a callback for {name}: {name} is not installed: add it with `pip install 'actcodec["
    assert done.stdout.startswith(said), done.stderr
