"""docs/user/plugin.md: its snippets run, and the tests that it names exist."""

import ast
import re
from pathlib import Path

import actcodec
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent.parent / "docs" / "user" / "plugin.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS = [f"S{number}" for number in range(1, 37) if number != 24] + [f"C{number}" for number in range(1, 15)]


@pytest.fixture
def names(tmp_path):
    """What a user has before a snippet: a model, a batch, an optimiser, and a group of one process."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 5))
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    torch._dynamo.reset()
    yield {
        "actcodec": actcodec,
        "torch": torch,
        "nn": nn,
        "F": F,
        "dist": dist,
        "checkpoint": checkpoint,
        "fully_shard": fully_shard,
        "init_device_mesh": init_device_mesh,
        "model": model,
        "x": torch.randn(4, 3, 8, 8),
        "labels": torch.tensor([0, 1, 2, 3]),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    }
    dist.destroy_process_group()


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.splitlines()[0])
def test_snippet_runs_and_every_parameter_gets_its_gradient(names, snippet):
    before = [p.detach().clone() for p in names["model"].parameters()]
    exec(compile(snippet, "docs/user/plugin.md", "exec"), names)
    assert all(p.grad is not None for p in names["model"].parameters())
    if "optimizer.step()" in snippet:
        assert not any(torch.equal(p, was) for p, was in zip(names["model"].parameters(), before, strict=True))


def test_every_row_has_tests_that_exist():
    rows = {line.split("|")[1].split()[0]: line for line in PAGE.splitlines() if re.match(r"\| [SC]\d+ ", line)}
    assert list(rows) == ROWS
    for line in rows.values():
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", line)
        assert named
        for file, function in named:
            tree = ast.parse((TESTS / file).read_text())
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
