"""``cdu memory`` as a user sees it."""

import json
import re
from pathlib import Path

import pytest
import typer
from cdu_cli import memory
from typer.testing import CliRunner

SCRIPT = """
import torch
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(4)))

def batch(count):
    return (torch.randn(count, 256),)

def step(x):
    return model(x).square().mean()
"""
EXAMPLE = Path(__file__).parents[3] / "examples" / "memory_me.py"


def run(*arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    memory.register(app)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(SCRIPT)
    return path


def test_the_largest_batch_fits_and_the_next_does_not(script, tmp_path):
    found = tmp_path / "found.json"
    text = run(script, "--policy", "none", "--policy", "checkpoint", "--gb", 0.01, "--batch", 16, "--json", found)
    for row in json.loads(found.read_text())["policies"]:
        largest = row["largest"]["0.01"]
        assert largest > 16
        assert f"{row['policy']}: peak" in text
        assert f"largest batch {largest} in 0.01 GB" in text
        for count, fits in ((largest, True), (largest + 1, False)):
            again = tmp_path / "again.json"
            run(script, "--policy", row["policy"], "--gb", 1, "--batch", count, "--json", again)
            (peak,) = [one["peak"] for one in json.loads(again.read_text())["policies"]]
            assert (peak <= 0.01 * 2**30) == fits


def test_a_model_without_blocks_has_a_row_and_a_sentence(script):
    script.write_text(SCRIPT.replace("torch.nn.Sequential(*(", "next(").replace("range(4)))", "range(4))"))
    text = run(script, "--batch", 16)
    assert text.startswith("none: peak")
    assert "checkpoint: the model has no blocks: a block is an element of a ModuleList" in text


def test_a_model_of_the_zoo_by_its_name_and_a_policy_of_its_family():
    text = run("timm.test_vit", "--policy", "none", "--policy", "sfpr", "--gb", 1)
    plain, coded = (int(number) for number in re.findall(r"largest batch (\d+) in 1 GB", text))
    assert coded > plain > 8
    assert "with a batch of 8" in text
    assert "the peak is in phase backward, in AddmmBackward0 of blocks.5.mlp.fc2" in text


def test_the_example_is_what_torchtune_has_measured(tmp_path):
    found = tmp_path / "found.json"
    run(EXAMPLE, "--policy", "none", "--dtype", "bf16", "--optimizer", "adamw", "--batch", 2, "--gb", 80, "--json", found)
    (row,) = json.loads(found.read_text())["policies"]
    assert row["peak"] / 2**30 == pytest.approx(60.0, rel=0.1)
    assert row["largest"] == {"80": 2}
