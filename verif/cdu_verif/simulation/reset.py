"""Resets of a simulated top, of either level."""

from __future__ import annotations

from typing import Any

from cdu_spec.config_rules import OWN_CLOCKS, RESET_PORTS


class Reset:
    """Reset ports of a top, which are driven together.

    Parameters
    ----------
    dut
        cocotb's handle of the top.
    """

    def __init__(self, dut: Any) -> None:
        # A unit with active-low reset has an inner signal with the name of the other port, which simulators show as well.
        level = next(level for level in ("low", "high") if hasattr(dut, RESET_PORTS[level]))
        self.signal = getattr(dut, RESET_PORTS[level])
        names = [f"{name}_{RESET_PORTS[level]}" for name in OWN_CLOCKS]
        self._signals = [self.signal, *(getattr(dut, name) for name in names if hasattr(dut, name))]
        self.active_high = level == "high"  #: value for cocotbext-axi

    def drive(self, active: bool) -> None:
        """Assert or release the reset."""
        for signal in self._signals:
            signal.value = int(active is self.active_high)

    def is_active(self) -> bool:
        """Return whether the top is being reset."""
        return bool(int(self.signal.value)) is self.active_high

    def axi(self) -> dict[str, Any]:
        """Return the arguments with the reset for cocotbext-axi's ends."""
        return {"reset": self.signal, "reset_active_level": self.active_high}
