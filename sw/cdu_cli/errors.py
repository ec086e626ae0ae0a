"""Endings of commands that fail for a reason outside them: one sentence and an exit code."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from cdu_tools.errors import UserError

#: Exit code of what the user can mend: arguments, files, room.
INPUT_ERROR = 2
#: Exit code when nobody reads what is printed.
_NOBODY_READS = 1
#: Characters of a word that an error repeats in full.
_LONGEST_WORD = 300
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Text of torch's RuntimeError where others raise MemoryError.
_TORCH_MEMORY = "can't allocate memory"


class Ended(BaseException):
    """A signal that asks the process to end, so that everything on the way out is tidied up as after an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """End the process with one sentence on standard error where the block raises what has its reason outside.

    Exit code 2 for :class:`UserError` and for what the system refuses (files, room on a disk, memory); 128 and its number for a
    signal (130 for SIGINT, 143 for SIGTERM). Everything else is an error of the program and keeps its traceback.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name of a file may be no UTF-8: it is printed as the bytes that it is.
        sys.stdout.reconfigure(errors="surrogateescape")
    try:
        with _signals_raise():
            try:
                yield
            finally:
                if sys.stdout is not None:  # closed
                    sys.stdout.flush()
    except Ended as ended:
        _end(f"ended by {ended.number.name}; no output is there in part", 128 + ended.number)
    except UserError as error:
        _end(str(error), INPUT_ERROR)
    except BrokenPipeError:
        _drop_output()
        sys.exit(_NOBODY_READS)
    except OSError as error:
        if error.errno == errno.ENOMEM:
            _end_without_memory()
        if error.errno == errno.ENOSPC:
            _drop_output()
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        _end(f"{where}{error.strerror or error}", INPUT_ERROR)
    except MemoryError:
        _end_without_memory()
    except RuntimeError as error:
        if _TORCH_MEMORY not in str(error):
            raise
        _end_without_memory()


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Signals that ask for the end raise :class:`Ended`; a second one ends the process at once. What is ignored stays so."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for other in taken:
            signal.signal(other, signal.SIG_DFL)
        raise Ended(number)

    taken = {number: signal.getsignal(number) for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)


def _end(sentence: str, code: int) -> NoReturn:
    """Print a message as one line, whatever the words that it repeats, and nothing after it: parts left half-made warn."""
    warnings.simplefilter("ignore")
    line = re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][:80]}...{word[0][-20:]}", " ".join(sentence.split()))
    with suppress(OSError):
        print(f"cdu: error: {line}", file=sys.stderr, flush=True)
    sys.exit(code)


def _end_without_memory() -> NoReturn:
    _end("the memory does not suffice: use a smaller input, or a process that may have more", INPUT_ERROR)


def _drop_output() -> None:
    """Discard buffered output that cannot be written; otherwise the interpreter would write it again at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
