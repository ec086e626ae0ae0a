"""Run what is near a change, as `make near` does: lint and types of the changed files, and the tests that mirror them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Folders of tests, and the folder of code whose rooms they have. The first that contains a file holds its tests; an extra has
#: its tests beside it.
MIRRORED = {"hw": "hw/cdu", "verif": "verif/cdu_verif", "synth": "synth/cdu_synth", "sw/actcodec": "sw/actcodec", "sw": "sw"}
TYPED = re.compile(r"(?:hw|sw|synth|verif|benchmarks|examples|extras/\w+/cdu_\w+)/")


def changed(root):
    """Return the files that differ from the merge base with main: committed, uncommitted, untracked and deleted ones."""

    def git(*words):
        return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, text=True).stdout.splitlines()

    base = git("merge-base", "HEAD", "main")
    return sorted({*git("diff", "--name-only", "--no-renames", *base), *git("ls-files", "--others", "--exclude-standard")})


def near(path, root):
    """Return the tests near a file that is no page.

    A test is near itself. A file of a room has the tests of its name, a command also those of an extra, or, where there are
    none, all tests of the room. A module of no room has the tests that import a module of its name. Data and fixtures among the
    tests have the tests of their folder.
    """
    file = root / path
    mirrors = [(root / "tests" / tests, root / code) for tests, code in MIRRORED.items() if path.startswith(f"{code}/")]
    rooms = [tests / file.relative_to(code).parts[0] for tests, code in mirrors]
    if path.startswith("extras/"):
        rooms = [root.joinpath(*Path(path).parts[:2], "tests")]
    if "tests" in Path(path).parts and file.match("test_*.py"):
        return {path} if file.exists() else set()
    if path.startswith("tests/") and path.count("/") > 1 and not path.startswith("tests/support/"):
        found = [file.parent]
    elif rooms and rooms[0].is_dir():
        places = [rooms[0], *(root.glob("extras/*/tests") if path.startswith("sw/cdu_cli/") else ())]
        found = [test for place in places for test in place.rglob(f"test_{file.stem}.py")] or [rooms[0]]
    else:
        package = (
            ".".join(Path(path).parent.parts[1:]) if path.startswith(tuple(f"{code}/" for code in MIRRORED.values())) else ""
        )
        module = rf"{package}(?:\.| import .*\b){file.stem}" if package else file.stem
        imports = re.compile(rf"^(?:from|import) {module}\b", re.MULTILINE)
        modules = [*root.glob("tests/**/test_*.py"), *root.glob("extras/*/tests/test_*.py")] if file.suffix == ".py" else []
        found = [test for test in modules if imports.search(test.read_text(encoding="utf-8"))]
    return {test.relative_to(root).as_posix() for test in found}


def plan(files, root):
    """Return the commands for changed files, each a list of words, and the files that have no check near them."""
    python, pages = ([file for file in files if file.endswith(end) and (root / file).exists()] for end in (".py", ".md"))
    typed = [file for file in python if TYPED.match(file)]
    found = {file: near(file, root) for file in files if not file.endswith(".md")}
    tests = sorted(set().union(*found.values()))
    todo = [
        ["ruff", "check", *python] if python else [],
        ["ruff", "format", "--check", *python] if python else [],
        ["mypy", *typed] if typed else [],
        ["pytest", *tests] if tests else [],
        ["pytest", "tests/test_pages.py"] if pages else [],
        ["pytest", "tests/test_snippets.py", "-k", " or ".join(pages)] if pages else [],
    ]
    return [words for words in todo if words], [file for file, tests in found.items() if not tests]


def passes(words):
    """Run a command of the environment; return whether it passes. A page without code has no test of its own."""
    code = subprocess.run([Path(sys.executable).with_name(words[0]), *words[1:]], cwd=ROOT).returncode
    return code in (0, pytest.ExitCode.NO_TESTS_COLLECTED if words[0] == "pytest" else 0)


def main():
    try:
        todo, alone = plan(changed(ROOT), ROOT)
    except subprocess.CalledProcessError as error:
        sys.exit(f"near: {error.stderr.strip()}: it compares with the branch main, which `git fetch origin main:main` makes")
    print("near:", "; ".join(" ".join(words) for words in todo) or "nothing to run", end="")
    print(f" (only `make test` tests {', '.join(alone)})" if alone else "", flush=True)
    failed = [words[0] for words in todo if not passes(words)]
    sys.exit(f"near: failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
