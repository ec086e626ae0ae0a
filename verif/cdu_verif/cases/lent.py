"""Cases that one process makes for another: the program that starts a simulation for the bench inside it.

To import the golden model takes longer than to simulate a small block; this way it is imported once for all of them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection, Listener
from random import Random
from threading import Event, Thread
from typing import Any

from cdu_spec.config import CduConfig

from cdu_verif.cases.case import Case, Cases, Ports


@contextmanager
def lend(cases: Callable[[], Cases]) -> Iterator[str]:
    """The address at which another process finds these cases, for the time of a block; they are made when it first asks.

    At its end that process has ended, or let go of what it borrowed: it is waited for.
    """
    over = Event()
    with Listener() as listener:
        lender = Thread(target=_answer_all, args=(listener, cases, over), daemon=True)
        lender.start()
        try:
            yield str(listener.address)
        finally:
            over.set()
            # Nothing else ends to wait for a connection.
            Client(listener.address).close()
            lender.join()


class BorrowedCases(Cases):
    """The cases at an address, with the ``rng`` of this process. RuntimeError with what the other one says when it has none."""

    def __init__(self, address: str) -> None:
        self._lender = Client(address)
        self.blocks, self.rate_blocks, self.settling, self.event_ports = self._answer()

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Directed cases."""
        found: list[Case] = self._drawn(rng, "corners", config, ports)
        return found

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Random content, about ``blocks`` times 8 rows."""
        found: Case = self._drawn(rng, "random", config, ports, blocks)
        return found

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Contents for which the rate is measured."""
        found: list[Case] = self._drawn(rng, "steady", config, ports, blocks)
        return found

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Cases in which something is wrong with jobs."""
        found: list[Case] = self._drawn(rng, "broken", config, ports)
        return found

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Payloads that a stream gave, with zeros for all that is undefined."""
        found: list[int] = self._asked("defined", None, stream, port, received)[0]
        return found

    def _drawn(self, rng: Random, what: str, config: CduConfig, ports: Ports, *blocks: int) -> Any:
        found, state = self._asked(what, rng.getstate(), config, ports, *blocks)
        rng.setstate(state)
        return found

    def _asked(self, *question: Any) -> Any:
        self._lender.send(question)
        return self._answer()

    def _answer(self) -> Any:
        answer, trouble = self._lender.recv()
        if trouble:
            raise RuntimeError(f"no cases: {trouble}")
        return answer


def _answer_all(listener: Listener, cases: Callable[[], Cases], over: Event) -> None:
    """Those that connect one after the other, until it is over."""
    while True:
        with listener.accept() as borrower:
            if over.is_set():
                return
            _answer(borrower, cases)


def _answer(borrower: Connection, cases: Callable[[], Cases]) -> None:
    """What one process asks, until it ends."""
    try:
        lent = cases()
        borrower.send(((lent.blocks, lent.rate_blocks, lent.settling, lent.event_ports), None))
        while True:
            what, state, *about = borrower.recv()
            borrower.send((_made(lent, what, state, about), None))
    except (EOFError, ConnectionError):
        return
    except Exception:
        borrower.send((None, traceback.format_exc()))


def _made(cases: Cases, what: str, state: Any, about: list[Any]) -> tuple[Any, Any]:
    """What a method gives, and the state of the random numbers behind it."""
    if state is None:
        return getattr(cases, what)(*about), None
    rng = Random()
    rng.setstate(state)
    config, ports, *blocks = about
    return getattr(cases, what)(config, ports, rng, *blocks), rng.getstate()
