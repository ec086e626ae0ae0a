"""Pages of the manual as their reader sees them, without the anchors of promises."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_SPEC = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
HOOKS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(HOOKS)


def page_text(name):
    """Return the text of a page, given its path below docs."""
    return HOOKS.ANCHOR.sub("", (DOCS / name).read_text(encoding="utf-8"))
