"""Clocks and resets of delivered Verilog: their ports, and the reset's level and kind."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockDomain, Elaboratable, Fragment, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring
from cdu_spec.config import CduConfig


class WithReset(Elaboratable):
    """A component whose reset has the level and the kind that ``config`` asks for.

    Amaranth's own reset of a domain is ``rst``, active high and synchronous; this class makes the other kinds for all domains.
    """

    def __init__(self, component: wiring.Component[Any], config: CduConfig) -> None:
        self.component, self.config = component, config
        self._domains: list[tuple[Any, Signal]] = [
            (ClockDomain(name, async_reset=config.reset_kind == "async"), Signal(name=reset))
            for name, (_, reset) in config.clock_ports.items()
        ]

    @property
    def ports(self) -> dict[str, tuple[Value, PortDirection]]:
        """Return the ports of clock and reset of each domain, by name."""
        signals = [signal for domain, port in self._domains for signal in (domain.clk, port)]
        return {signal.name: (signal, PortDirection.Input) for signal in signals}

    def elaborate(self, platform: Any) -> Any:
        # No module wraps the component, so that its parts have the same names with any reset.
        whole: Any = Fragment.get(self.component, platform)  # type: ignore[no-untyped-call]
        for domain, port in self._domains:
            whole.add_domains(domain)
            active = ~port if self.config.reset_active == "low" else port
            whole.add_statements("comb", [domain.rst.eq(active)])
        return whole


def has_own_reset(config: CduConfig) -> bool:
    """Return whether the reset differs from Amaranth's own (active high, synchronous)."""
    return (config.reset_active, config.reset_kind) != ("high", "sync")
