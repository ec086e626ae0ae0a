"""Writing files so that nothing is ever half there."""

from __future__ import annotations

from pathlib import Path

from cdu_spec.errors import UserError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and rename it, so that nobody ever sees half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}") from None
