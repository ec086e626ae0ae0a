"""Adapt pages for the site: links to files outside the manual become their paths."""

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).parents[1]
#: Links of the manual that leave the folder ``docs``.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)]+)\)")
#: Anchor behind a promised sentence, by which a row of docs/reference/promises_*.csv names the sentence.
ANCHOR = re.compile(r"<!-- p:([a-z][a-z0-9-]*) -->")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave out anchors of promises, and show the path of a file outside of the manual, which the site has no page of."""
    folder = Path("docs", page.file.src_uri).parent.as_posix()

    def path(match: re.Match[str]) -> str:
        target = normpath(f"{folder}/{match[2].partition('#')[0]}")
        return match[0] if target.startswith("docs/") else f"{match[1]} (`{target}`)"

    return _OUTSIDE.sub(path, ANCHOR.sub("", markdown))
