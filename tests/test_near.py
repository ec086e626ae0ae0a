"""Check what `make near` runs for a change."""

import subprocess
from pathlib import Path

import pytest
from near import ROOT, changed, near, plan


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@example.com", *words], cwd=folder, check=True)


@pytest.fixture
def clone(tmp_path):
    """Provide a branch beside a main that has gone on."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for name in ("old.py", "gone.py", "moved.py", ".gitignore"):
        (tmp_path / name).write_text("build/\n" if name == ".gitignore" else f"# {name}\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    git(tmp_path, "checkout", "--quiet", "-b", "mine")
    git(tmp_path, "mv", "moved.py", "here.py")
    git(tmp_path, "commit", "--quiet", "-m", "mine")
    git(tmp_path, "checkout", "--quiet", "main")
    (tmp_path / "theirs.py").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "theirs")
    git(tmp_path, "checkout", "--quiet", "mine")
    return tmp_path


def test_changes_since_the_branch_left_main(clone):
    assert changed(clone) == ["here.py", "moved.py"]


def test_changes_that_are_not_committed(clone):
    (clone / "old.py").write_text("changed")
    (clone / "gone.py").unlink()
    (clone / "new.py").write_text("")
    (clone / "build").mkdir()
    (clone / "build" / "made.py").write_text("")
    assert changed(clone) == ["gone.py", "here.py", "moved.py", "new.py", "old.py"]


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("hw/cdu/transform/dct.py", {"tests/hw/transform/test_dct.py"}),
        ("hw/cdu/transform/block_exchange.py", {"tests/hw/transform"}),
        ("sw/actcodec/golden/dct.py", {"tests/sw/actcodec/golden/test_dct.py"}),
        ("sw/actcodec/codecs/jpeg/block_codec.py", {"tests/sw/actcodec/codecs"}),
        ("sw/cdu_tools/cache.py", {"tests/sw/cdu_tools/test_cache.py"}),
        ("synth/cdu_synth/area/flow.py", {"tests/synth/area/test_flow.py"}),
        ("sw/cdu_cli/gone.py", {"tests/sw/cdu_cli"}),
        ("sw/cdu_cli/dqt.py", {"extras/dqt/tests/test_dqt.py"}),
        ("tests/hw/transform/test_dct.py", {"tests/hw/transform/test_dct.py"}),
        ("tests/hw/transform/test_gone.py", set()),
        ("tests/sw/cdu_cli/wrong_invocations.toml", {"tests/sw/cdu_cli"}),
        ("conftest.py", set()),
        ("extras/conftest.py", set()),
        ("extras/offload/cdu_offload/trace.py", {"extras/offload/tests/test_trace.py"}),
        ("extras/offload/cdu_offload/platform.json", {"extras/offload/tests"}),
        ("extras/offload/tests/test_trace.py", {"extras/offload/tests/test_trace.py"}),
        ("extras/offload/tests/test_gone.py", set()),
        ("tests/support/files_for_tests.py", {"tests/sw/cdu_cli/test_wrong_invocations.py"}),
        ("extras/support/small_networks.py", {"extras/offload/tests/test_simulation.py"}),
        ("Makefile", set()),
    ],
)
def test_tests_near_a_file(path, tests):
    assert near(path, ROOT) == tests
    assert all((ROOT / test).exists() for test in tests)


def test_what_several_tests_need_has_the_tests_that_import_it():
    assert near("tests/support/near.py", ROOT) == {"tests/test_near.py", "tests/test_architecture.py", "tests/test_quick.py"}
    both = {"tests/hw/control/test_access.py", "tests/verif/backends/test_compiled_unit.py"}
    assert near("hw/cdu/bus/axi_lite.py", ROOT) == both


def test_every_file_of_a_package_has_tests_or_is_named():
    """Check all files at once: a room without tests is the exception."""
    codes = [*(ROOT / code for code in ("hw", "sw", "synth", "verif")), *ROOT.glob("extras/*/cdu_*")]
    files = [path.relative_to(ROOT).as_posix() for code in codes for path in code.rglob("*.py")]
    _, alone = plan(files, ROOT)
    assert {Path(path).name for path in alone} <= {"__init__.py", "__main__.py", "channels.py", "words.py", "values.py"}


#: Code of an extra and of the core, and tests.
PYTHON = (
    *("extras/offload/cdu_offload/trace.py", "extras/offload/tests/test_trace.py"),
    *("hw/cdu/transform/dct.py", "tests/test_near.py"),
)


def test_commands_for_code_and_pages():
    todo, alone = plan(["Makefile", "docs/gone.md", "docs/index.md", *PYTHON], ROOT)
    assert todo == [
        ["ruff", "check", *PYTHON],
        ["ruff", "format", "--check", *PYTHON],
        ["mypy", "extras/offload/cdu_offload/trace.py", "hw/cdu/transform/dct.py"],
        ["pytest", "extras/offload/tests/test_trace.py", "tests/hw/transform/test_dct.py", "tests/test_near.py"],
        ["pytest", "tests/test_pages.py"],
        ["pytest", "tests/test_snippets.py", "-k", "docs/index.md"],
    ]
    assert alone == ["Makefile"]


def test_nothing_has_changed():
    assert plan([], ROOT) == ([], [])
