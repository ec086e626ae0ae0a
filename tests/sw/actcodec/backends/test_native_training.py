"""Training with backend native gives the torch version's gradients to the last bit; the commands offer the backend."""

import json

import actcodec
import pytest
import torch
import typer
from actcodec.study.models import ResNet
from actcodec.training import policy
from cdu_cli import inventory, train
from typer.testing import CliRunner

POLICIES = [
    *("jpeg-act", "jpeg-base", "sfpr", "sfpr+zvc", "division", "actnn", "brc"),
    *("actnn-L1", "actnn-L2", "actnn-L3", "autojpegz", "autoshift", "auto"),
]


def gradients(name, backend, steps=2):
    torch.manual_seed(0)
    model = ResNet(channels=3, width=8, depth=1, stages=2)
    images, labels = torch.randn(4, 3, 16, 16), torch.randint(10, (4,))
    chosen = policy(name, backend=backend)
    found, kept = [], []
    for _ in range(steps):
        model.zero_grad()
        with actcodec.compress_activations(model, chosen) as stats:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        found += [parameter.grad.clone() for parameter in model.parameters()]
        kept.append(stats.bytes_compressed)
    return found, kept


@pytest.mark.parametrize("name", POLICIES)
def test_same_gradients(name):
    (expected, kept), (found, kept_too) = gradients(name, "torch"), gradients(name, "native")
    assert kept == kept_too
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def run(command, *arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    command.register(app)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_command_trains_with_it(tmp_path):
    losses = []
    for backend in ("torch", "native"):
        options = ("--steps", 2, "--seeds", 1, "--width", 8, "--limit", 128, "--codec", "jpeg-act,actnn-L2")
        result = run(train, *options, "--backend", backend, "-o", tmp_path / backend)
        assert result.exit_code == 0, result.output
        runs = json.loads((tmp_path / backend / "results.json").read_text())["runs"]
        assert {run["backend"] for run in runs} == {backend}
        losses.append([run["losses"] for run in runs])
    assert losses[0] == losses[1]


def test_list_says_whether_it_is_here(tmp_path, monkeypatch):
    assert run(inventory, "--json", tmp_path / "here.json").exit_code == 0
    rows = {row["name"]: row for row in json.loads((tmp_path / "here.json").read_text())["backends"]}
    assert rows["torch"]["here"]
    assert rows["native"]["here"]
    assert rows["rtl"]["here"] or rows["rtl"]["add"]
    monkeypatch.setenv("CXX", "no-such-compiler")
    result = run(inventory)
    assert "native  missing: backend 'native' needs the compiler no-such-compiler of $CXX" in result.output
    assert "rtl     missing: " in result.output
