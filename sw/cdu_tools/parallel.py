"""Work for several processors: threads that wait for programs, and processes that end with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
#: Seconds that a process has to clean up once the one that it works for is gone.
_GRACE_SECONDS = 3.0


def largest_first(
    work: Callable[[_Item], _Result], items: Sequence[_Item], size: Callable[[_Item], float], threads: int | None = None
) -> list[_Result]:
    """What ``work`` returns for each item, in the order of the items.

    The first error is raised when what is under way has ended; nothing else begins after it.

    Parameters
    ----------
    work
        Runs in threads, which suffice where it waits for programs in processes of their own (Yosys, nextpnr).
    items
        What to work on.
    size
        How long an item takes, in any unit: the largest begin first, so that none is left for the end.
    threads
        Items at once; default: as many as there are processors.
    """
    order = sorted(range(len(items)), key=lambda place: -size(items[place]))
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        futures = {place: pool.submit(work, items[place]) for place in order}
        try:
            for future in as_completed(futures.values()):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [futures[place].result() for place in range(len(items))]


def processes(count: int) -> ProcessPoolExecutor:
    """So many processes. When this one ends, in whatever way, they end what they run, and themselves."""
    # Forked processes would inherit the locks of threads that do not exist in them.
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_start)


def _start() -> None:
    """Prepare a process for its work.

    It ends when the one that started it is gone: its work is interrupted, so that this ends its programs. There are as many
    processes as the user wants threads, so libraries start no more of them.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A shell lets what it starts in the background ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        parent.join()
        # Of the whole process any thread could take it, and what the first one waits for would go on.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(_GRACE_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
