"""Commands of the base installation run without the packages of extras; others name the extra in one sentence."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires

import pytest
from cdu_tools.distribution import NAME
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def base_distributions():
    """Names of the distributions that the base installation brings, with those that they need."""
    found, left = set(), [NAME]
    while left:
        name = canonicalize_name(left.pop())
        if name not in found:
            found.add(name)
            needed = map(Requirement, requires(name) or ())
            left += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


#: Modules of packages that only extras bring.
OF_EXTRAS = sorted(
    module
    for module, names in packages_distributions().items()
    if module.isidentifier() and not {canonicalize_name(name) for name in names} & base_distributions()
)
#: Imports the command line where packages of extras are not installed.
WITHOUT_EXTRAS = f"""
import sys
from importlib.machinery import PathFinder

class Base(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {set(OF_EXTRAS)} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Base
from cdu_cli.main import main

main()
"""


def cdu(folder, *words):
    command = [sys.executable, "-c", WITHOUT_EXTRAS, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_modules_of_extras_are_hidden():
    assert {"torch", "numpy", "matplotlib", "cocotb", "systemrdl"} <= set(OF_EXTRAS)
    assert not {"amaranth", "typer", "rich", "cdu_cli", "cdu"} & set(OF_EXTRAS)


@pytest.mark.parametrize("words", [["--version"], ["list"], ["pdk", "list"], ["registers", "--help"]])
def test_hardware_needs_no_extra(tmp_path, words):
    done = cdu(tmp_path, *words)
    assert done.returncode == 0, done.stderr


def test_the_help_of_every_command_needs_no_extra(tmp_path):
    begin = WITHOUT_EXTRAS.replace("from cdu_cli.main import main\n\nmain()", "")
    program = (
        begin
        + """
import typer.main
from cdu_cli.main import app
from click.testing import CliRunner

entry = typer.main.get_command(app)
for name in entry.commands:
    done = CliRunner().invoke(entry, [name, "--help"], env={"COLUMNS": "4000"}, catch_exceptions=False)
    assert done.output.startswith(f"Usage: cdu {name} "), done.output
print(CliRunner().invoke(entry, ["train", "--help"], env={"COLUMNS": "4000"}).output)
"""
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Network: (torch is not installed: add it with `pip install 'actcodec[train]'`)" in " ".join(done.stdout.split())


def test_what_is_missing_stands_on_one_screen(tmp_path):
    lines = cdu(tmp_path, "list").stdout.splitlines()
    assert lines[0] == "missing:"
    assert len(lines) <= 30
    (line,) = (line for line in lines if "actcodec[train]" in line)
    assert line.split("  ")[1].startswith("codecs, policies, backends, ")


@pytest.mark.parametrize("words", [["--config", "tiny"], ["--block", "zvc_encoder"]])
def test_verilog_needs_no_extra(tmp_path, words):
    done = cdu(tmp_path, "generate", *words, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / f"{words[1]}.v").is_file()


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("registers -o out", "rdl"),
        ("verify -o out", "verify"),
        ("mutate -o out", "verify"),
        ("coverage . -o out", "verify"),
        ("vectors -o out", "verify"),
        ("soc -o out", "soc"),
        ("synth --block dct -o out", "synth"),
        ("sweep --vary cdus=1 -o out", "synth"),
        ("place -o out", "place"),
        ("compare --peers . -o out", "train,synth"),
        ("power -o out", "train,synth"),
        ("train -o out", "train"),
        ("check mine.py", "train"),
        ("memory timm.test_vit", "train"),
        ("diagnose -o out", "train"),
        ("dqt -o out", "train"),
        ("fit-levels -o out", "train"),
        ("offload -o out", "train"),
        ("compress x.npy x.cdu", "train"),
        ("decompress x.cdu x.npy", "train"),
        ("info x.cdu", "train"),
        ("export-jpeg x.cdu x.jpg", "train"),
    ],
)
def test_what_needs_an_extra_names_it_in_one_line(tmp_path, words, extra):
    done = cdu(tmp_path, *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.fullmatch(rf"cdu: error: \w+ is not installed: add it with `pip install 'actcodec\[{extra}\]'`", line), line
    assert not list(tmp_path.iterdir())


def test_actcodec_without_torch_says_what_to_install(tmp_path):
    program = WITHOUT_EXTRAS.replace("from cdu_cli.main import main\n\nmain()", "import actcodec")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: torch is not installed: add it with `pip install 'actcodec[train]'`"
    )
    assert "During handling" not in done.stderr
