"""Download of a known library: existing files are kept, interrupted downloads resumed, and wrong files refused."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from cdu_tools import cache
from cdu_tools.errors import UserError

from cdu_synth.library.pdk import Known, Published, stem

#: Receives a file's name and the number of bytes downloaded.
Progress = Callable[[str, int], None]
_CHUNK = 1 << 16
#: Seconds without data after which a connection is regarded as broken.
_PATIENCE = 30


class FetchError(UserError):
    """File that could not be fetched, or that is not the published one."""


class _BrokenError(Exception):
    """Connection that ended or was not made, with the reason."""


def fetch(library: Known, folder: Path, progress: Progress) -> list[Path]:
    """Return the files of a library in ``folder``, which is made if missing; missing files are downloaded.

    A file gets its name when it is complete and its SHA-256 is the published one. An interrupted download is kept as
    ``NAME.partial``, and the next call resumes it. Of several processes one downloads and the others wait for it.

    Raises
    ------
    FetchError
        if an address cannot be reached or delivers something else, if a file of that name exists and differs, or if the folder
        cannot be written.
    """
    try:
        cache.make_private(folder)
        with cache.lock(folder / f".{library.name}.lock"):
            return [_file(published, folder, progress) for published in library.files]
    except OSError as error:
        raise FetchError(cache.cannot_use(folder, f"{error.strerror or error}")) from None


def present(published: Published, folder: Path) -> Path | None:
    """Return a published file, compressed or not, in ``folder``, or None."""
    name = stem(Path(published.name))
    return next((path for path in (folder / f"{name}.lib", folder / f"{name}.lib.gz") if path.is_file()), None)


def unpacked_sha256(path: Path, packed: bool) -> str:
    """Return the SHA-256 of the text of a Liberty file; empty if ``packed`` is true and it is no whole gzip file."""
    with path.open("rb") as raw:
        try:
            return hashlib.file_digest(gzip.GzipFile(fileobj=raw) if packed else raw, "sha256").hexdigest()
        except (gzip.BadGzipFile, EOFError, zlib.error):
            return ""


def _file(published: Published, folder: Path, progress: Progress) -> Path:
    here = present(published, folder)
    if here is not None:
        if unpacked_sha256(here, here.suffix == ".gz") != published.sha256:
            raise FetchError(
                f"{here} is not the file of {published.address}, whose text has the SHA-256 {published.sha256}: "
                "move it away to fetch that one"
            )
        return here
    target = folder / published.name
    partial = folder / f"{published.name}.partial"
    _download(published, partial, progress)
    if (found := unpacked_sha256(partial, target.suffix == ".gz")) != published.sha256:
        partial.unlink()
        what = f"a file whose text has the SHA-256 {found}" if found else "a damaged file"
        raise FetchError(
            f"{published.address} delivered {what} instead of {published.sha256}: nothing of it was kept; fetch it again, or "
            f"{_by_hand(published, folder)}"
        )
    return partial.replace(target)


def _download(published: Published, partial: Path, progress: Progress) -> None:
    """Complete ``partial``; a broken connection is made again as long as each one delivers something."""
    if _size(partial) > published.size:
        partial.unlink()
    before, reason = -1, ""
    while (here := _size(partial)) != published.size:
        if here <= before:
            if not here:
                partial.unlink(missing_ok=True)
            kept = f"; {here:,} of {published.size:,} bytes are here, and fetching again goes on from there" if here else ""
            raise FetchError(
                f"cannot fetch {published.address}: {reason}{kept}; without a connection {_by_hand(published, partial.parent)}"
            )
        before, reason = here, _go_on(published, partial, progress)


def _go_on(published: Published, partial: Path, progress: Progress) -> str:
    """Request the missing bytes once and write the bytes that arrive; return why the connection ended."""
    with partial.open("ab") as file:
        try:
            for position, chunk in _arriving(published, partial.stat().st_size):
                file.truncate(position)
                if position + len(chunk) > published.size:
                    file.truncate(0)
                    return f"it is longer than the {published.size:,} bytes of the published file"
                file.write(chunk)
                progress(published.name, position + len(chunk))
        except _BrokenError as error:
            return str(error)
    return "the connection broke"


def _arriving(published: Published, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of a file with their positions, from ``start``, or from 0 if the server does not support ranges."""
    # No compression in transit: a range counts the bytes of the file itself.
    headers = {"Accept-Encoding": "identity", "User-Agent": "cdu"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        with urlopen(Request(published.address, headers=headers), timeout=_PATIENCE) as response:
            position = start if response.status == HTTPStatus.PARTIAL_CONTENT else 0
            while chunk := response.read(_CHUNK):
                yield position, chunk
                position += len(chunk)
    except HTTPError as error:
        error.close()
        raise _BrokenError(f"the server answers {error.code} {error.reason}") from None
    except URLError as error:
        reason = (isinstance(error.reason, OSError) and error.reason.strerror) or error.reason
        raise _BrokenError(f"no connection ({reason})") from None
    except (OSError, HTTPException) as error:
        raise _BrokenError(f"the connection broke ({error})") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _by_hand(published: Published, folder: Path) -> str:
    return f"get it on another machine and put it into {folder} as {published.name}"
