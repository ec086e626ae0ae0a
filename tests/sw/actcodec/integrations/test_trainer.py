"""The callback for transformers' Trainer: compressed tensors, end of compression, logs, and resumed runs."""

import json
import warnings

import actcodec
import pytest
import torch
from actcodec.training import policy, policy_options
from cdu_tools.errors import UserError
from torch import nn
from torch.nn import functional as F

STEPS, BREAK = 6, 4


@pytest.fixture(scope="module")
def hf(transformers):
    pytest.importorskip("accelerate", reason="needs accelerate: pip install 'actcodec[frameworks]'")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@pytest.fixture
def callback(hf):
    from actcodec.integrations.transformers import CompressionCallback

    return CompressionCallback


class Network(nn.Module):
    """A network for a Trainer: it returns a loss when it is given labels."""

    def __init__(self, dropout):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(dropout)),
            *(nn.Flatten(), nn.Linear(8 * 64, 4)),
        )
        self.passes = []  # for each pass: in training, and saved by hooks
        self.fails_at = None

    def forward(self, x, labels):
        if self.training and len(self.passes) == self.fails_at:
            raise KeyboardInterrupt
        self.passes.append((self.training, torch._C._autograd._top_saved_tensors_default_hooks(True) is not None))
        logits = self.layers(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def network(dropout=0.2):
    torch.manual_seed(0)
    return Network(dropout)


class Rows(torch.utils.data.Dataset):
    def __init__(self, count=24):
        random = torch.Generator().manual_seed(5)
        self.x, self.labels = torch.randn(count, 3, 8, 8, generator=random), torch.arange(count) % 4

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        return {"x": self.x[place], "labels": self.labels[place]}


def trainer(hf, folder, callbacks, dropout=0.2, **arguments):
    model = network(dropout)
    settings = {
        **{"max_steps": STEPS, "per_device_train_batch_size": 8, "logging_steps": 1, "save_steps": BREAK, "seed": 3},
        **{"learning_rate": 0.01, "report_to": "none", "use_cpu": True, "disable_tqdm": True, "save_strategy": "steps"},
    }
    made = hf.TrainingArguments(str(folder), **settings | arguments)
    return hf.Trainer(model, made, train_dataset=Rows(), eval_dataset=Rows(8), callbacks=callbacks)


def losses(done):
    return [row["loss"] for row in done.state.log_history if "loss" in row]


def weights(done):
    return [p.detach().clone() for p in done.model.parameters()]


def test_training_is_compressed_and_evaluation_is_not(hf, callback, tmp_path):
    mine = callback("sfpr", exclude="layers.5")
    done = trainer(hf, tmp_path, [mine], eval_strategy="steps", eval_steps=2)
    done.train()
    assert done.model.passes.count((True, True)) == STEPS
    assert done.model.passes.count((False, False)) == 3
    assert len(done.model.passes) == STEPS + 3
    rows = [row for row in done.state.log_history if "loss" in row]
    assert len(rows) == STEPS
    assert all(2 < row["ratio_of_everything"] < 5 for row in rows)
    assert not any("ratio_of_everything" in row for row in done.state.log_history if "eval_loss" in row)
    assert {row["codec"] for row in mine.statistics.tensors if row["name"] == "layers.0"} == {"sfpr"}
    assert {row["codec"] for row in mine.statistics.tensors if row["name"] == "layers.5"} <= {"exact", "brc"}


def test_the_trainer_is_left_as_it_was(hf, callback, tmp_path):
    done = trainer(hf, tmp_path, [callback("sfpr")])
    before = dict(vars(done.model))
    done.train()
    assert "compute_loss" not in vars(done)
    assert vars(done.model).keys() - before.keys() == {"_is_accelerate_prepared"}
    assert not done.model._forward_hooks
    assert not done.model._forward_pre_hooks


def test_gradients_are_those_of_the_context(hf, callback, tmp_path):
    """Two steps with two parts each, against a loop with the context by hand: the same bits."""
    seen, found = [], []

    class Watching(hf.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            found.append([p.grad.clone() for p in kwargs["model"].parameters()])

    arguments = {"gradient_accumulation_steps": 2, "max_steps": 2, "max_grad_norm": 0.0, "learning_rate": 0.0}
    arguments["per_device_train_batch_size"] = 6
    done = trainer(hf, tmp_path, [callback("actnn"), Watching()], dropout=0.0, **arguments)
    done.model.register_forward_pre_hook(lambda _, args, kwargs: seen.append(dict(kwargs)), with_kwargs=True)
    done.train()
    assert len(seen) == 4
    model = network(dropout=0.0)
    compression = actcodec.compress_activations(model, "actnn")
    for wanted, batches in zip(found, (seen[:2], seen[2:]), strict=True):
        model.zero_grad()
        for batch in batches:
            with compression:
                loss = model(**batch)["loss"] / 2
            loss.backward()
        assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), wanted, strict=True))


def with_interval(name):
    return {"interval": 2} if "interval" in policy_options(name) else {}


@pytest.mark.parametrize("name", ["actnn", "jpeg-act", "actnn-L3", "autoquant", "auto", "jpeg-gmc"])
def test_a_run_that_is_gone_on_with_has_the_same_bits(hf, callback, tmp_path, name):
    options = with_interval(name) | ({"dqt": "optLH"} if name == "jpeg-act" else {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # auto cannot reach its goal
        whole = trainer(hf, tmp_path / "whole", [callback(name, **options)])
        whole.train()
        part = trainer(hf, tmp_path / "part", [callback(name, **options)])
        part.train(resume_from_checkpoint=tmp_path / "whole" / f"checkpoint-{BREAK}")
    assert len(losses(whole)) == STEPS
    assert losses(part) == losses(whole)  # the first ones are those of the checkpoint
    assert part.model.passes == whole.model.passes[BREAK:]
    assert all(torch.equal(a, b) for a, b in zip(weights(part), weights(whole), strict=True))


def test_a_run_that_began_without_compression_is_gone_on_with(hf, callback, tmp_path):
    trainer(hf, tmp_path, []).train()
    done = trainer(hf, tmp_path, [callback("actnn")], save_steps=1)
    done.train(resume_from_checkpoint=tmp_path / f"checkpoint-{BREAK}")
    assert done.model.passes == [(True, True)] * (STEPS - BREAK)


@pytest.mark.parametrize(("given", "end"), [("actnn", "actnn"), ("actnn", "sfpr")])
def test_callbacks_that_the_trainer_makes_anew(hf, callback, tmp_path, given, end):
    """With restore_callback_states_from_checkpoint the callback is made again with the arguments of the checkpoint."""
    whole = trainer(hf, tmp_path, [callback(given)])
    whole.train()
    part = trainer(hf, tmp_path, [callback(end)], restore_callback_states_from_checkpoint=True)
    part.train(resume_from_checkpoint=tmp_path / f"checkpoint-{BREAK}")
    assert losses(part) == losses(whole)


def test_a_checkpoint_of_another_policy_is_refused(hf, callback, tmp_path):
    trainer(hf, tmp_path, [callback("actnn")]).train()
    with pytest.raises(UserError, match="load it into a policy of the name and the options"):
        trainer(hf, tmp_path, [callback("sfpr")]).train(resume_from_checkpoint=tmp_path / f"checkpoint-{BREAK}")


def test_the_state_is_plain_text_and_a_second_training_begins_anew(hf, callback, tmp_path):
    mine = callback("actnn-L3", interval=2)
    done = trainer(hf, tmp_path, [mine])
    done.train()
    entry = json.loads((tmp_path / f"checkpoint-{BREAK}" / "trainer_state.json").read_text())["stateful_callbacks"]
    assert entry["CompressionCallback"]["args"] == {"codec": "actnn-L3", "interval": 2}
    first = losses(done)
    again = trainer(hf, tmp_path / "again", [mine])
    again.train()
    assert losses(again) == first


@pytest.mark.parametrize("broken", ["forward", "backward"])
def test_an_exception_ends_the_context(hf, callback, tmp_path, broken):
    mine = callback("sfpr")
    done = trainer(hf, tmp_path, [mine])
    if broken == "forward":
        done.model.fails_at = 2
    else:
        done.accelerator.backward = lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        done.train()
    assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None
    done.model.fails_at = None
    done.model(Rows().x[:4], Rows().labels[:4])
    assert done.model.passes[-1] == (True, False)
    again = trainer(hf, tmp_path / "again", [mine])
    again.train()
    assert all(compressed for _, compressed in again.model.passes)
    assert "compute_loss" not in vars(done) | vars(again)


def test_epochs_come_to_the_policy(hf, callback, tmp_path):
    heard = []
    mine = policy("jpeg-act", dqt="optLH")
    mine.set_epoch = heard.append
    trainer(hf, tmp_path, [callback(mine)]).train()
    assert heard == [0, 1]


def test_a_compiled_model_is_trained_operation_by_operation(hf, callback, tmp_path):
    plain = trainer(hf, tmp_path / "plain", [callback("actnn")], max_steps=2)
    plain.train()
    compiled = trainer(hf, tmp_path / "compiled", [callback("actnn")], max_steps=2, torch_compile=True)
    compiled.args.torch_compile_backend = "eager"
    with pytest.warns(UserWarning, match="runs operation by operation"):
        compiled.train()
    assert losses(compiled) == losses(plain)


def test_nothing_saved_is_warned_of(hf, callback, tmp_path):
    done = trainer(hf, tmp_path, [callback("sfpr")], max_steps=2)
    done.training_step = lambda model, inputs, count: model(**inputs)["loss"].detach()
    with pytest.warns(UserWarning, match="saved nothing within the context") as caught:
        done.train()
    assert len(caught) == 1


def test_wrong_options_are_said_before_the_first_step(hf, callback, tmp_path):
    with pytest.raises(UserError, match="'layres' is no module of the model"):
        trainer(hf, tmp_path, [callback("sfpr", exclude="layres")]).train()
    with pytest.raises(UserError, match="no Trainer of transformers calls this callback"):
        callback("sfpr").on_train_begin(None, hf.TrainerState(stateful_callbacks=[]), None, model=network())
