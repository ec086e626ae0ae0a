"""Parallel work: threads that wait for programs, and processes that end with the process that started them."""

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
#: Seconds that a process has to clean up after its parent has ended.
_GRACE_SECONDS = 3.0


def largest_first(
    work: Callable[[_Item], _Result], items: Sequence[_Item], size: Callable[[_Item], float], threads: int | None = None
) -> list[_Result]:
    """Return the results of ``work`` for each item, in the order of the items.

    The first error is raised after the items under way have ended; no other item begins after it.

    Parameters
    ----------
    work
        Runs in threads, which suffice if it waits for programs in processes of their own (Yosys, nextpnr).
    items
        The items.
    size
        Returns the expected duration of an item, in any unit: the largest begin first, so that none is left for the end.
    threads
        Items at once; by default the number of processors.
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
    """Return a pool of ``count`` processes that end, with the programs they run, when this process ends in any way."""
    # Forked processes would inherit the locks of threads that do not exist in them.
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_start)


def _start() -> None:
    """Prepare a process for its work.

    The process ends after its parent has ended: its work is interrupted, so that it ends its programs. The user's number of
    threads is the number of processes, so that libraries start no threads of their own.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A shell lets background programs ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        parent.join()
        # Any thread could receive a signal to the process, and the program that the main thread waits for would go on.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(_GRACE_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
