"""Cases that one process makes for another: the program that starts a simulation for the bench inside it.

To import the golden model takes longer than to simulate a small block; this way it is imported once for all of them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.connection import Client, Connection, Listener
from random import Random
from threading import Event, Thread
from typing import Any

from cdu_spec.config import CduConfig

from cdu_verif.cases.case import Case, Cases, Ports


@contextmanager
def lend(cases: Callable[[], Cases]) -> Iterator[str]:
    """The address at which another process finds these cases, for the time of a block; they are made when it first asks.

    At its end nobody waits for anybody: processes that hold them keep them, no other gets them.
    """
    over = Event()
    with Listener() as listener:
        host = Thread(target=_receive, args=(listener, cases, over), daemon=True)
        host.start()
        try:
            yield str(listener.address)
        finally:
            over.set()
            # Nothing else ends to wait for a connection.
            Client(listener.address).close()
            host.join()


class BorrowedCases(Cases):
    """The cases at an address, with the ``rng`` of this process. RuntimeError with what the other one says when it has none."""

    def __init__(self, address: str) -> None:
        self._lender = Client(address)
        facts = ("blocks", "rate_blocks", "settling", "event_ports")
        self.blocks, self.rate_blocks, self.settling, self.event_ports = (self._asked(fact, None)[0] for fact in facts)

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
        answer, trouble = self._lender.recv()
        if trouble:
            raise RuntimeError(f"no cases: {trouble}")
        return answer


def _receive(listener: Listener, cases: Callable[[], Cases], over: Event) -> None:
    """Those that connect, each in a thread of its own, until it is over."""
    while True:
        borrower = listener.accept()
        if over.is_set():
            borrower.close()
            return
        Thread(target=_answer, args=(borrower, cases), daemon=True).start()


def _answer(borrower: Connection, cases: Callable[[], Cases]) -> None:
    """What one process asks, until it ends; what goes wrong here is said there."""
    lent = cache(cases)
    with borrower, suppress(EOFError, OSError):
        while True:
            what, state, *about = borrower.recv()
            try:
                answer = _made(lent(), what, state, about), ""
            except Exception:
                answer = (None, None), traceback.format_exc()
            borrower.send(answer)


def _made(cases: Cases, what: str, state: Any, about: list[Any]) -> tuple[Any, Any]:
    """What a method gives, and the state of the random numbers behind it; without that, what a method or an attribute gives."""
    asked = getattr(cases, what)
    if state is None:
        return asked(*about) if callable(asked) else asked, None
    rng = Random()
    rng.setstate(state)
    config, ports, *blocks = about
    return asked(config, ports, rng, *blocks), rng.getstate()
