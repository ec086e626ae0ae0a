"""Read small text files that a user names."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8; OSError for other files: a device or a pipe may have no end.

    UnicodeDecodeError, a ValueError, for other bytes.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return path.read_text(encoding="utf-8")
