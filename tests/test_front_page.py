"""The first pages that a visitor sees: the README, the index of the manual, and the beginnings of its pages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Words of the README, its tables included.
WORDS = 400


def test_readme_is_short_and_has_a_picture():
    assert len(README.split()) <= WORDS
    assert re.search(r"!\[[^\]]+\]\(docs/\S+\.svg\)", README)


def test_site_has_every_page():
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(re.findall(r": (\S+\.md)$", site, re.MULTILINE)) == sorted(
        page.relative_to(DOCS).as_posix() for page in PAGES
    )


def test_index_has_four_doors_of_five_pages():
    _, *doors = re.split(
        r"^## (?=I )", (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## Figures")[0], flags=re.MULTILINE
    )
    pages = [re.findall(r"^- \[[^]]+\]\((\S+?\.md)\): \w", door, re.MULTILINE) for door in doors]
    assert [len(found) for found in pages] == [5] * 4
    assert len({page for found in pages for page in found}) == 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_begins_with_what_it_says(page):
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, first, *_ = re.split(r"\n\s*\n", text.strip())
    if "\n" in title:
        title, _, first = title.partition("\n")
    assert re.match(r"# \S", title)
    assert not re.match(r"#|\||```| {4}|- ", first), first
    assert len(" ".join(first.split())) >= 160, first
