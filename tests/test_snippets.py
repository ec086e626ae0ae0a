"""Check the text to type in README and manual: Python runs, commands have the options and the files that it names."""

import ast
import copy
import importlib
import re
import shlex
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import actcodec
import pytest
import torch
import torch.distributed as dist
from actcodec.training import Rule
from cdu_spec import CONFIGS, CduConfig
from cdu_spec.dqt_file import table_text
from command_line import ENTRY
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
#: Needs a unit: run by tests/verif/backends/test_driver.py.
ELSEWHERE = "docs/user/integration.md"
PYTHON = [
    (page, snippet)
    for page, text in TEXTS.items()
    if page != ELSEWHERE
    for snippet in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
]
#: A name of one of the packages.
#: Names of Python; `cdu_dma.c` is a file.
NAME = re.compile(r"`((?:actcodec|cdu|cdu_[a-z]+)(?:\.(?!(?:c|h|hpp)`)\w+)+)")
#: Replacement of "and so on": in a context a step, elsewhere a step with the policy.
STEP = "loss = criterion(model(x), target); loss.backward()"
POLICY_STEP = "with actcodec.compress_activations(model, policy): " + STEP


def commands(text, program):
    """Lines of code that begin with a program, without their comments, continued lines joined."""
    fenced = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
    code = [body for language, body in fenced.findall(text) if not language]
    code += re.findall(r"^    .*\n", fenced.sub("", text), re.MULTILINE)
    for line in "".join(code).replace("\\\n", " ").splitlines():
        stripped = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
        if stripped.startswith(f"{program} "):
            yield re.sub(r"\s#.*", "", stripped).strip()


CDU = [(page, line) for page, text in TEXTS.items() for line in commands(text, "cdu")]
SCRIPTS = [(page, line) for page, text in TEXTS.items() for line in commands(text, "python")]
MAKE = [(page, line) for page, text in TEXTS.items() for line in commands(text, "make")]


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Provide the names that a user has before a snippet: a model, a batch, an optimiser, files, and a group of one process."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 5))
    table = tmp_path / "build" / "dqt" / "table.json"
    table.parent.mkdir(parents=True)
    table.write_text(table_text([16] * 64, {}))
    (tmp_path / "mine.toml").write_text('[[rules]]\ncodec = "sfpr"\n', encoding="utf-8")
    (tmp_path / "train.toml").write_text('[compression]\npolicy = "sfpr"\n', encoding="utf-8")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    torch._dynamo.reset()
    labels = torch.tensor([0, 1, 2, 3])
    x = torch.randn(4, 3, 8, 8)
    given = {
        "actcodec": actcodec,
        "torch": torch,
        "nn": nn,
        "F": F,
        "dist": dist,
        "checkpoint": checkpoint,
        "Rule": Rule,
        "my_codec": actcodec.codec("acgc-quant"),
        "model": model,
        "criterion": F.cross_entropy,
        "loss_of": F.cross_entropy,
        "x": x,
        "y": labels,
        "target": labels,
        "labels": labels,
        "indices": torch.arange(4),
        "error": torch.full((3,), 0.05),
        "policy": actcodec.training.policy("sfpr"),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
    }
    yield given
    # A group that a wrapped model keeps alive is freed under Python's lock, for which Gloo's thread may wait.
    del model
    given.clear()
    dist.destroy_process_group()


@pytest.mark.parametrize(("page", "snippet"), PYTHON, ids=lambda part: part.splitlines()[0][:60])
def test_python_runs_and_every_parameter_gets_its_gradient(names, page, snippet):
    before = copy.deepcopy([p.detach() for p in names["model"].parameters()])
    text = re.sub(r"^    \.\.\.$", f"    {STEP}", snippet, flags=re.MULTILINE)
    text = re.sub(r"^\.\.\.$", POLICY_STEP, text, flags=re.MULTILINE)
    exec(compile(text, page, "exec"), names)
    if "backward()" in text:
        assert all(p.grad is not None for p in names["model"].parameters())
    if "optimizer.step()" in text:
        assert not any(torch.equal(p, was) for p, was in zip(names["model"].parameters(), before, strict=True))


def test_snippets_are_of_the_manual():
    assert {page for page, _ in PYTHON} >= {"README.md", "docs/start/train.md", "docs/start/files.md", "docs/user/plugin.md"}
    for page, snippet in PYTHON:
        assert ast.parse(snippet), page


@pytest.mark.parametrize(("page", "line"), CDU, ids=lambda part: part[:80])
def test_command_has_what_is_given_to_it(page, line):
    command = ENTRY
    words = shlex.split(line)[1:]
    while hasattr(command, "commands") and words:
        command = command.commands[words.pop(0)]
    context = command.context_class(command, info_name=command.name)
    _, rest, _ = command.make_parser(context).parse_args(words)
    assert not rest, rest
    given = {
        option: [words[at + 1] for at, word in enumerate(words[:-1]) if word == option]
        for option in ("--set", "--vary", "--config")
    }
    assert {one.partition("=")[0] for one in given["--set"] + given["--vary"]} <= {field.name for field in fields(CduConfig)}
    assert set(given["--config"]) <= set(CONFIGS)


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if NAME.search(text)])
def test_names_in_the_text_are_there(page):
    for name in sorted(set(NAME.findall(TEXTS[page]))):
        parts, module = name.split("."), None
        for count in range(len(parts), 0, -1):
            with suppress(ImportError):
                module = importlib.import_module(".".join(parts[:count]))
                break
        for attribute in parts[count:]:
            module = getattr(module, attribute)


@pytest.mark.parametrize(("page", "line"), SCRIPTS, ids=lambda part: part[:80])
def test_script_is_there_and_has_its_options(page, line):
    script, *words = shlex.split(line)[1:]
    if script.startswith("-") or f'title="{script}"' in TEXTS[page]:
        return
    text = (ROOT / script).read_text(encoding="utf-8")
    for word in words:
        if word.startswith("--"):
            assert f'"{word.partition("=")[0]}"' in text, word


@pytest.mark.parametrize(("page", "line"), MAKE, ids=lambda part: part[:80])
def test_target_is_there(page, line):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in line.split()[1:]:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_command_is_found():
    assert {line for page, line in CDU if page == "README.md"}
    assert {line for page, line in MAKE if page == "README.md"} == {"make demo", "make test"}
    assert len(CDU) > 40
    assert len(SCRIPTS) > 10
