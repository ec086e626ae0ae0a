"""Clocks of a simulated top: one, or unrelated ones for ports with clocks of their own."""

from __future__ import annotations

from random import Random
from typing import Any

from cdu_spec.config_rules import OWN_CLOCKS
from cdu_spec.ports import CLOCK_OF
from cocotb.clock import Clock

#: Periods of separate clocks relative to that of the unit, and the share by which each differs between tests.
_RATIOS, _SPREAD = {"registers": 2.3, "values": 0.8, "packed": 1.4}, 0.15
_PS = 1000


def own(dut: Any) -> dict[str, Any]:
    """Return the clocks other than ``clk``, by name."""
    return {name: getattr(dut, f"{name}_clk") for name in OWN_CLOCKS if hasattr(dut, f"{name}_clk")}


def clock_of(dut: Any, port: str) -> Any:
    """Return the clock of a port."""
    return own(dut).get(CLOCK_OF.get(port, ""), dut.clk)


def start(dut: Any, period_ns: float, rng: Random) -> None:
    """Start all clocks; separate ones have any period near their ratio, also primes of ps, so that all phases occur."""
    Clock(dut.clk, period_ns, unit="ns").start()
    for name, clock in own(dut).items():
        ratio = _RATIOS[name] * rng.uniform(1 - _SPREAD, 1 + _SPREAD)
        Clock(clock, 2 * round(period_ns * _PS * ratio / 2), unit="ps").start()
