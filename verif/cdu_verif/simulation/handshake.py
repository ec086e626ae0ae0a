"""The rules that the sending end of a stream obeys, as a checker of one cycle after the other."""

from __future__ import annotations


class HandshakeError(AssertionError):
    """A stream that broke a rule."""


class HandshakeMonitor:
    """Checks that valid and payload hold until the transfer.

    Call :meth:`check` once per cycle with the settled values, :meth:`forget` when the unit is reset.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._waiting: int | None = None

    @property
    def waiting(self) -> bool:
        """Whether the payload of the next cycle is compared with one before."""
        return self._waiting is not None

    def check(self, valid: bool, ready: bool, payload: int) -> None:
        """One cycle; ``payload`` counts only when it is compared, or waits now. Raises HandshakeError."""
        if self._waiting is not None:
            if not valid:
                raise HandshakeError(f"{self.name}: valid fell before the transfer")
            if payload != self._waiting:
                raise HandshakeError(
                    f"{self.name}: payload changed from {self._waiting:#x} to {payload:#x} before the transfer"
                )
        self._waiting = payload if valid and not ready else None

    def forget(self) -> None:
        """Nothing is waiting any more."""
        self._waiting = None
