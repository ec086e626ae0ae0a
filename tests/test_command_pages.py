"""Every command has a page in the site, with all that its --help says."""

import importlib.util
import re
import shlex
from types import SimpleNamespace

import pytest
from cdu_cli.main import app
from manual_pages import DOCS
from typer.testing import CliRunner

_SPEC = importlib.util.spec_from_file_location("docs_command_pages", DOCS / "command_pages.py")
PAGES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(PAGES)
TEXTS = PAGES.pages()
COMMANDS = {page.removesuffix(".md").rpartition("/")[2]: text for page, text in list(TEXTS.items())[1:]}


def words(text):
    """Return the words of a text without Markdown's characters and what a terminal breaks."""
    return set(re.findall(r"\w{3,}", re.sub(r"\\([*_|\[\]])", r"\1", text.replace("&lt;", "<"))))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_says_what_help_says(name):
    called = COMMANDS[name].partition("\n")[0].removeprefix("# cdu ").split()
    result = CliRunner().invoke(app, [*called, "--help"], env={"COLUMNS": "4000"}, prog_name="cdu")
    assert result.exit_code == 0
    shown = re.sub(r"^\s+", "", result.output, flags=re.MULTILINE)
    assert words(shown) - words(COMMANDS[name]) <= {"Usage", "Example", "Examples", "Arguments", "Options"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_an_example_that_calls_the_command(name):
    title, _, rest = COMMANDS[name].partition("\n")
    (examples,) = re.findall(r"^## Examples\n\n```\n(.*?)\n```", rest, re.MULTILINE | re.DOTALL)
    for line in examples.splitlines():
        assert shlex.split(line)[: len(title.split()) - 1] == title.removeprefix("# ").split()


def test_the_navigation_has_every_page_once():
    config = SimpleNamespace(nav=[{"CDU": "index.md"}, {"Reference": ["reference/api.md"]}])
    (_, reference) = PAGES.on_config(config).nav
    index, *others = reference["Reference"][-1]["Commands"]
    assert [index, *(path for entry in others for path in entry.values())] == list(TEXTS)
    assert len(others) > 25
    assert all(f"]({path.rpartition('/')[2]})" in TEXTS[index] for path in list(TEXTS)[1:])


def test_the_site_has_the_hook():
    assert "  - docs/command_pages.py\n" in (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
