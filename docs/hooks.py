"""Adapt pages for the site: links to files outside the manual become their paths."""

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).parents[1]
#: Links of the manual that leave the folder ``docs``.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Show the path of a file outside of the manual instead of a link, as the site has no such page."""
    folder = Path("docs", page.file.src_uri).parent.as_posix()

    def path(match: re.Match[str]) -> str:
        target = normpath(f"{folder}/{match[2].partition('#')[0]}")
        return match[0] if target.startswith("docs/") else f"{match[1]} (`{target}`)"

    return _OUTSIDE.sub(path, markdown)
