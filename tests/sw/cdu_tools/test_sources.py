"""Checksums follow the code of modules, and nothing else in them."""

import sys

import pytest
from cdu_tools.sources import code_of, sources_sha256

SOURCE = '''"""A module."""

# A comment.
LIMIT = "# no comment"  # A comment.


class Thing:
    """A thing."""

    def size(self):
        """Return the size,

        which is 3.
        """
        return 3


async def later():
    "Wait."
    text = """no
    docstring"""
    return text
'''
CODE = '''LIMIT = "# no comment"
class Thing:
    def size(self):
        return 3
async def later():
    text = """no
    docstring"""
    return text
'''


def test_code_is_what_is_no_comment_and_no_docstring():
    assert code_of(SOURCE) == CODE


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "thing_of_tests"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "part.py").write_text(SOURCE)
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


WORDS = SOURCE.replace("A comment", "Other words").replace("which is 3", "and say it\n\n        twice")


@pytest.mark.parametrize(("code_only", "same"), [(True, True), (False, False)])
def test_words_about_code_count_in_the_text_alone(package, code_only, same):
    before = sources_sha256(package.name, code_only=code_only)
    (package / "part.py").write_text(WORDS)
    assert (sources_sha256(package.name, code_only=code_only) == before) is same


@pytest.mark.parametrize("code_only", [True, False])
@pytest.mark.parametrize(
    ("old", "new"),
    [("return 3", "return 4"), ("# no comment", "# no words"), ("    docstring", "    other text"), ("3\n", "3\n    x = 1\n")],
)
def test_code_counts(package, old, new, code_only):
    before = sources_sha256(package.name, f"{package.name}.part", code_only=code_only)
    (package / "part.py").write_text(SOURCE.replace(old, new))
    assert sources_sha256(package.name, f"{package.name}.part", code_only=code_only) != before


def test_files_count_by_their_names(package):
    before = sources_sha256(package.name)
    (package / "part.py").rename(package / "other.py")
    assert sources_sha256(package.name) != before


def test_a_module_that_is_missing():
    with pytest.raises(ModuleNotFoundError, match="no module named 'nothing_here'"):
        sources_sha256("nothing_here")
