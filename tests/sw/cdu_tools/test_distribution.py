"""The distribution's name: in pyproject.toml, in every advice to install something, and nowhere a stranger's."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from cdu_cli import group
from cdu_tools import distribution
from cdu_tools.errors import MissingToolError
from command_line import ENTRY
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIRED = [Requirement(line) for line in (*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines))]
PINNED = [Requirement(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
PYTHONS = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
#: Other packages that texts advise: the codecs of NVIDIA's own GPUs, from NVIDIA.
OTHERS = {"nvidia-nvcomp-cu13"}
_ROOMS = ("sw", "hw", "verif/cdu_verif", "synth", "extras/*/cdu_*", "benchmarks", "docs", "examples")
#: Texts that this project ships, without those about the past.
TEXTS = [
    path
    for room in (*_ROOMS, "*.md", "*.toml", "Makefile")
    for place in ROOT.glob(room)
    for path in ([place] if place.is_file() else place.rglob("*"))
    if path.suffix in {".py", ".md", ".toml", ".ipynb", ".yml", ".sh", ""} and path.is_file() and path.name != "CHANGELOG.md"
]
_ADVICE = re.compile(r"pip install\s+((?:-c\s+\S+\s+|--?\w[\w-]*\s+)*)(['\"]?)([\w.-]+|\{[^}]+\})(?:\[([\w,{}]+)\])?")


def advised():
    """Each distribution, with the extra, that a text advises to install, and the text."""
    for path in TEXTS:
        for match in _ADVICE.finditer(path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT), match[3], match[4]


def test_the_name_is_that_of_pyproject():
    assert PROJECT["name"] == distribution.NAME
    assert PROJECT["scripts"] == {"cdu": "cdu_cli.main:main"}
    assert importlib.metadata.metadata(distribution.NAME)["Name"] == distribution.NAME


def test_texts_advise_this_distribution_or_one_that_it_needs():
    owned = {distribution.NAME, *OTHERS, *(canonicalize_name(required.name) for required in REQUIRED)}
    found = list(advised())
    assert len(found) > 20
    wrong = [
        f"{path}: pip install {name}"
        for path, name, _ in found
        if name != "." and not name.startswith("{") and canonicalize_name(name) not in owned
    ]
    assert not wrong


def test_texts_advise_extras_that_there_are():
    wrong = [
        f"{path}: {name}[{extras}]"
        for path, name, extras in advised()
        if extras and not extras.startswith("{") and not set(extras.split(",")) <= set(EXTRAS)
    ]
    assert not wrong


@pytest.mark.parametrize(("text", "name"), [("`pip install cdu`", "cdu"), ("pip install -U\n'cdu[models]'", "cdu")])
def test_a_stranger_would_be_found(text, name):
    assert _ADVICE.search(text)[3] == name


def test_code_names_an_extra_that_there_is():
    calls = re.compile(r"\b(?:missing|adding)\([^()\n]*[\"'](\w+)[\"']\)")
    named = [extra for path in TEXTS if path.suffix == ".py" for extra in calls.findall(path.read_text(encoding="utf-8"))]
    assert len(named) >= 10, "the others are those of group.EXTRAS"
    assert len(named) + len(group.EXTRAS) >= 34
    assert set(named) <= set(EXTRAS)


def test_commands_name_extras_that_there_are():
    assert {extra for extras in group.EXTRAS.values() for extra in extras.split(",")} <= set(EXTRAS)
    assert set(group.EXTRAS) <= set(ENTRY.commands)


def test_the_advice_is_one_sentence():
    error = distribution.missing("cocotb", "verify")
    assert isinstance(error, MissingToolError)
    assert str(error) == "cocotb is not installed: add it with `pip install 'actcodec[verify]'`"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("torch", "train"),
        ("sklearn", "train"),
        ("PIL", "train"),
        ("matplotlib", "plots"),
        ("cocotb", "verify"),
        ("numpy", "plots"),
        ("amaranth", None),
    ],
)
def test_modules_name_their_extra(module, extra):
    assert distribution.extra_of(module) == extra


@pytest.mark.parametrize(
    ("module", "preferred", "extra"),
    [
        ("matplotlib", "synth", "synth"),
        ("matplotlib", "soc", "soc"),
        ("torch", "train,synth", "train,synth"),
        ("torch", "synth", "train"),
        ("amaranth", "synth", None),
    ],
)
def test_the_extra_of_the_work_is_named_where_it_has_the_module(module, preferred, extra):
    assert distribution.extra_of(module, preferred) == extra


def test_source_alone_says_what_to_do(monkeypatch):
    monkeypatch.setattr(distribution, "NAME", "no_such_distribution")
    with pytest.raises(MissingToolError, match=r"no_such_distribution is not installed: run `pip install -e \.` in"):
        distribution.version()


def test_pythons_are_claimed_one_by_one():
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert PYTHONS == ["3.11", "3.12", "3.13"]
    assert PYTHONS[0] in allowed
    assert "3.10" not in allowed


@pytest.mark.parametrize("python", PYTHONS)
def test_the_pinned_versions_are_those_that_are_asked_for(python):
    pinned = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in PINNED}
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    asked = [one for one in REQUIRED if one.name != distribution.NAME and (not one.marker or one.marker.evaluate(environment))]
    assert len(asked) > 40
    for one in asked:
        assert one.specifier.contains(pinned[canonicalize_name(one.name)]), one
