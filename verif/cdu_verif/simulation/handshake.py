"""Checker of the rules that the sending end of a stream must keep, one cycle at a time."""

from __future__ import annotations


class HandshakeError(AssertionError):
    """Breach of a rule by a stream."""


class HandshakeMonitor:
    """Check that valid and payload hold until the transfer.

    Call :meth:`check` once per cycle with the settled values, :meth:`forget` when the unit is reset.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._waiting: int | None = None

    @property
    def waiting(self) -> bool:
        """Return whether the payload of the next cycle will be compared with the present one."""
        return self._waiting is not None

    def check(self, valid: bool, ready: bool, payload: int) -> None:
        """Check one cycle; ``payload`` matters only if it is compared, or waits now. Raises HandshakeError."""
        if self._waiting is not None:
            if not valid:
                raise HandshakeError(f"{self.name}: valid fell before the transfer")
            if payload != self._waiting:
                raise HandshakeError(
                    f"{self.name}: payload changed from {self._waiting:#x} to {payload:#x} before the transfer"
                )
        self._waiting = payload if valid and not ready else None

    def forget(self) -> None:
        """Forget a waiting payload."""
        self._waiting = None
