"""Order of a whole run of the tests, its garbage collection, and its summary."""

import gc
from pathlib import Path

import pytest

#: Rooms whose tests build and simulate come first, so that no worker waits at the end for a long test.
_LONG = ("soc", "verif", "placement", "synth", "hw", "examples")


def pytest_collection_modifyitems(items):
    """Stable, so that the tests of a file stay together."""

    def place(item):
        _, room, *_ = Path(item.path).relative_to(Path(__file__).parent).parts
        return _LONG.index(room) if room in _LONG else len(_LONG)

    items.sort(key=place)


def pytest_collection_finish():
    """Freeze the present objects: searching modules and tests for cycles again and again takes a sixth of a run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _cache_of_inductor(tmp_path_factory):
    """Give each process a new cache, as torch 2.13 takes from a shared one C++ for vectors that another CPU has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


def pytest_terminal_summary(terminalreporter):
    """The areas that were measured, with their budgets; the workers of pytest-xdist send them with their reports."""
    reports = [report for key in ("passed", "failed") for report in terminalreporter.getreports(key)]
    areas = dict(sorted(pair for report in reports for key, pair in report.user_properties if key == "area"))
    if areas:
        from cdu_synth.area import budgets

        terminalreporter.section("area of the blocks")
        for line in budgets.table(areas, budgets.read()):
            terminalreporter.write_line(line)
