"""Cases served by the program that starts a simulation to the bench inside it.

Importing the golden model takes longer than simulating a small block; this way it is imported once for all of them.
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

from cdu_verif.cases.case import Case, Cases
from cdu_verif.simulation.ports import Ports


@contextmanager
def lend(cases: Callable[[], Cases]) -> Iterator[str]:
    """Serve cases to other processes within a ``with`` block and return the address; they are made when first asked for.

    The end of the block waits for no process: clients keep their cases, and no new client is accepted.
    """
    over = Event()
    with Listener() as listener:
        host = Thread(target=_receive, args=(listener, cases, over), daemon=True)
        host.start()
        try:
            yield str(listener.address)
        finally:
            over.set()
            # A connection is the only way to end the wait for one.
            Client(listener.address).close()
            host.join()


class BorrowedCases(Cases):
    """Cases at an address, drawn with this process's ``rng``. Raises RuntimeError with the server's message if it fails."""

    def __init__(self, address: str) -> None:
        self._lender = Client(address)
        facts = ("blocks", "rate_blocks", "settling", "event_ports")
        self.blocks, self.rate_blocks, self.settling, self.event_ports = (self._asked(fact, None)[0] for fact in facts)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed cases."""
        found: list[Case] = self._drawn(rng, "corners", config, ports)
        return found

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return random content of about ``blocks`` times 8 rows."""
        found: Case = self._drawn(rng, "random", config, ports, blocks)
        return found

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return the cases with which the rate is measured."""
        found: list[Case] = self._drawn(rng, "steady", config, ports, blocks)
        return found

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return cases with faulty jobs."""
        found: list[Case] = self._drawn(rng, "broken", config, ports)
        return found

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return payloads received from a stream with zeros for undefined fields."""
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
    """Accept clients until ``over`` is set, each in a thread of its own."""
    while True:
        borrower = listener.accept()
        if over.is_set():
            borrower.close()
            return
        Thread(target=_answer, args=(borrower, cases), daemon=True).start()


def _answer(borrower: Connection, cases: Callable[[], Cases]) -> None:
    """Answer the questions of one client until it disconnects; an exception is sent to it as text."""
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
    """Return a method's result and the random state after it; without ``state`` a method's or an attribute's value."""
    asked = getattr(cases, what)
    if state is None:
        return asked(*about) if callable(asked) else asked, None
    rng = Random()
    rng.setstate(state)
    config, ports, *blocks = about
    return asked(config, ports, rng, *blocks), rng.getstate()
