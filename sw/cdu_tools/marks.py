"""Parts of a page that a command writes, between two permanent lines."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.errors import UserError
from cdu_tools.files import write_whole


@dataclass(frozen=True)
class Marks:
    """The marks of one part: ``<!-- name: begin -->`` and ``<!-- name: end -->``."""

    name: str

    @property
    def begin(self) -> str:
        """The first line."""
        return f"<!-- {self.name}: begin -->"

    @property
    def end(self) -> str:
        """The last line."""
        return f"<!-- {self.name}: end -->"

    def parts(self, page: Path) -> tuple[str, str, str]:
        """Return a page before, between and after the marks; UserError if the page or the marks are missing."""
        try:
            text = page.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot read {page}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UserError(f"{page} is no text in UTF-8: use a Markdown page") from None
        before, begin, rest = text.partition(self.begin)
        between, end, after = rest.partition(self.end)
        if not (begin and end):
            raise UserError(f"{page} lacks the lines {self.begin} and {self.end}: put them where the table shall stand")
        return before, between, after

    def check(self, page: Path) -> None:
        """Raise UserError if :meth:`put` would fail, because the page or marks are missing or it may not be written."""
        self.parts(page)
        if not os.access(page, os.W_OK):
            raise UserError(f"cannot write {page}: {os.strerror(errno.EACCES)}")

    def put(self, page: Path, text: str) -> None:
        """Write the text between the marks, which begins and ends with a line of its own."""
        before, _, after = self.parts(page)
        write_whole(page, f"{before}{self.begin}{text}{self.end}{after}")
