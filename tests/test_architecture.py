"""Check docs/developer/architecture.md: packages and rooms import only those below them, except for the arrows on the page."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from near import MIRRORED

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "developer" / "architecture.md").read_text(encoding="utf-8")
FOLDERS = {
    path.rpartition("/")[2]: path for path in re.findall(r"^\| `((?:hw|sw|verif|synth|extras/\w+)/\w+)` \|", PAGE, re.MULTILINE)
}
ROOMS = {
    title.rpartition("/")[2]: [
        room for cell in re.findall(r"^\| ([^|]+) \|", body, re.MULTILINE) for room in re.findall(r"`(\w+)`", cell)
    ]
    for title, body in re.findall(r"^## (\w+/\w+)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
}
UPWARDS = set(re.findall(r"^\| `(\w+)`: `(\w+)` -> `(\w+)` \|", PAGE, re.MULTILINE))


@cache
def imports(package):
    """The modules that each file of a package imports, whole names."""
    base = ROOT / FOLDERS[package]
    found = {}
    for path in sorted(base.rglob("*.py")):
        names = found[path.relative_to(base).with_suffix("").parts] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
            elif isinstance(node, ast.Import):
                names |= {name.name for name in node.names}
    return found


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_imports_what_the_table_allows(package):
    (cell,) = re.findall(rf"^\| `{FOLDERS[package]}` \|[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)
    allowed = set(FOLDERS) if cell.strip() == "all" else {package, *re.findall(r"`(\w+)`", cell)}
    used = {name.partition(".")[0] for names in imports(package).values() for name in names}
    assert (used & set(FOLDERS)) <= allowed


def test_the_core_imports_no_extra():
    """Check code and tests of every package but the command, which offers all."""
    extras = {name for name, folder in FOLDERS.items() if folder.startswith("extras/")}
    assert {ROOT / FOLDERS[name] for name in extras} == {path.parent for path in ROOT.glob("extras/*/*/__init__.py")}
    code = [path for name in FOLDERS.keys() - extras - {"cdu_cli"} for path in (ROOT / FOLDERS[name]).rglob("*.py")]
    tests = [path for room in ("hw", "verif", "synth", "sw") for path in (ROOT / "tests" / room).rglob("*.py")]
    imported = re.compile(rf"^ *(?:from|import) (?:{'|'.join(extras)})\b", re.MULTILINE)
    found = [path for path in (*code, *tests) if imported.search(path.read_text(encoding="utf-8"))]
    assert not [path for path in found if not path.is_relative_to(ROOT / "tests" / "sw" / "cdu_cli")]


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_rooms_below_them(package):
    order = ROOMS[package]
    inside = {path.name for path in (ROOT / FOLDERS[package]).iterdir() if (path / "__init__.py").is_file()}
    assert set(order) == inside
    up = set()
    for (room, *_), names in imports(package).items():
        if room in inside:
            others = {name.split(".")[1] for name in names if name.startswith(f"{package}.")} & inside - {room}
            up |= {(package, room, other) for other in others if order.index(other) <= order.index(room)}
    assert up == {arrow for arrow in UPWARDS if arrow[0] == package}


def test_no_module_imports_itself_through_others():
    """Imports within functions and for type checkers count."""
    modules = {}
    for package in FOLDERS:
        for parts, names in imports(package).items():
            modules[".".join((package, *(part for part in parts if part != "__init__")))] = names
    graph = {}
    for module, names in modules.items():
        inner = {name for name in names if name in modules}
        # A name within a module that has its own file is that file, not the package around it.
        graph[module] = {name for name in inner if not any(other.startswith(f"{name}.") for other in inner)} - {module}
    TopologicalSorter(graph).prepare()  # an error names the modules of a circle


@pytest.mark.parametrize("tests", MIRRORED)
def test_tests_stand_where_their_code_does(tests):
    base = ROOT / "tests" / tests
    rooms = {path.relative_to(base).parts[0] for path in base.rglob("test_*.py")}
    assert len(rooms) > 3
    assert rooms <= {path.name for path in (ROOT / MIRRORED[tests]).iterdir() if path.is_dir()}


def test_no_test_stands_beside_the_rooms():
    alone = [path for tests in MIRRORED for path in (ROOT / "tests" / tests).glob("test_*.py")]
    assert not alone


def test_every_path_on_the_page_is_there():
    for path in re.findall(r"`((?:hw|sw|verif|synth|extras|tests)/[\w./]+)`", PAGE):
        assert (ROOT / path).exists(), path


def test_only_tests_of_benchmarks_import_them():
    names = "|".join(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
    imported = re.compile(rf"^ *(?:from|import) (?:{names})\b", re.MULTILINE)
    importing = {path for path in (ROOT / "tests").rglob("*.py") if imported.search(path.read_text(encoding="utf-8"))}
    assert importing
    assert {path.parent for path in importing} == {ROOT / "tests" / "benchmarks"}
