"""Wheel and source archive hold every file that they need; what the wheel holds works where the checkout is not."""

import ast
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [ROOT / folder for folder in METADATA["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
CHECK = ROOT / "benchmarks" / "release_check.py"
#: Files that tools leave behind.
LEFT = {"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis"}


def files(folder):
    """Every file of a folder but what tools leave there."""
    return {path for path in folder.rglob("*") if path.is_file() and not LEFT & set(path.parts)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel, installed by pip in a folder of its own; packages that it needs are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-index", "--target", folder]
    subprocess.run([*pip, wheel], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture
def use(installed, tmp_path):
    """Run a program with the packages of the wheel before those of the checkout, in an empty folder."""

    def run(code, *words):
        environment = os.environ | {"PYTHONPATH": str(installed)}
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {path.relative_to(package.parent).as_posix() for package in PACKAGES for path in files(package)}


def test_every_package_of_the_checkout_is_in_the_wheel():
    rooms = [folder for room in ("sw", "hw", "verif", "synth") for folder in (ROOT / room).iterdir() if folder.is_dir()]
    rooms = [*(folder for folder in rooms if folder.name not in LEFT), *ROOT.glob("extras/*/cdu_*")]
    assert sorted(PACKAGES) == sorted(rooms)
    assert set(METADATA["tool"]["mypy"]["packages"]) == {folder.name for folder in PACKAGES}


def test_the_source_archive_has_everything_that_tests_and_pages_are_made_of(tmp_path):
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(path) as archive:
        held = {Path(*Path(name).parts[1:]).as_posix() for name in archive.getnames()}
    rooms = ("sw", "hw", "verif", "synth", "extras", "tests", "docs", "benchmarks", "examples")
    wanted = {file.relative_to(ROOT).as_posix() for room in rooms for file in files(ROOT / room)}
    assert wanted <= held
    assert {"pyproject.toml", "conftest.py", "constraints.txt", "Makefile", "README.md", "LICENSE"} <= held
    assert not [name for name in held if name.startswith((".venv", "build", "dist"))]


def test_nothing_is_taken_from_the_checkout(installed, use):
    """Packages, the list of what is here, and the Verilog of a block, with the data files that all these read."""
    names = [package.name for package in PACKAGES]
    found = use("import importlib.util as u, sys; print(*(u.find_spec(name).origin for name in sys.argv[1:]))", *names).split()
    assert found == [str(installed / name / "__init__.py") for name in names]
    command = "import sys; from cdu_cli.main import main; sys.argv[0] = 'cdu'; main()"
    assert "kGE" in use(command, "list", "--all")
    assert "zvc_encoder.v" in use(command, "generate", "--block", "zvc_encoder", "-o", "out")


def test_the_readmes_first_python_runs_from_the_wheel(installed, use):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    said = use(f"{snippet}\nprint(actcodec.__file__)")
    assert re.search(r"^activations .* \d\.\d\d$", said, re.MULTILINE), said
    assert said.splitlines()[-1] == str(installed / "actcodec" / "__init__.py")


def test_no_module_of_a_package_names_the_checkout():
    """Data are found beside the module that reads them, never above its package."""
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            climbs = re.findall(r"__file__.*\.(?:parents|parent\.parent)\b", path.read_text(encoding="utf-8"))
            assert not climbs, path.relative_to(ROOT)


def test_the_release_check_looks_at_every_package():
    (assigned,) = (
        node.value
        for node in ast.parse(CHECK.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PACKAGES"
    )
    assert set(ast.literal_eval(assigned)) == {package.name for package in PACKAGES}


def test_the_release_check_knows_every_extra_and_installs_it_after_those_that_it_includes():
    release_check = runpy.run_path(str(CHECK))
    order = release_check["in_order"]()
    assert sorted(order) == sorted(METADATA["project"]["optional-dependencies"])
    for extra in order:
        assert set(release_check["included"](extra)) < set(order[: order.index(extra) + 1])
    assert release_check["included"]("verify") == ["train"]
    assert release_check["claimed"]() == ["3.11", "3.12", "3.13"]


def test_the_release_check_fails_in_one_sentence(tmp_path):
    """A checkout that cannot be built: here one without its packages."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / CHECK.name).write_text(CHECK.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "nosuch"\n', encoding="utf-8")
    command = [sys.executable, tmp_path / "benchmarks" / CHECK.name, "-o", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("release check: build ended with exit code")


def test_the_release_check_refuses_a_base_install_that_outgrew_its_limit(tmp_path):
    """The modules are compiled before their bytes are counted, as pip compiles them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "made"], check=True, timeout=300)
    release_check = runpy.run_path(str(CHECK))
    module = tmp_path / "made" / "lib" / "module.py"
    module.write_text("here = 1\n", encoding="utf-8")
    release_check["check_size"](tmp_path / "made")
    assert list(module.parent.rglob("module.*.pyc"))
    with (tmp_path / "made" / "large").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, release_check["MOST_BYTES"])
    with pytest.raises(release_check["ReleaseError"], match=r"The base install has 25\d MB, more than 250 MB\."):
        release_check["check_size"](tmp_path / "made")
