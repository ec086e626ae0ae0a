"""Clock and reset of what is delivered: their ports, and how registers see the reset."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockDomain, Elaboratable, Fragment, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring
from cdu_spec.config import CduConfig

#: The domain of all registers.
_DOMAIN = "sync"


class WithReset(Elaboratable):
    """A component whose reset has the level and the kind that ``config`` asks for.

    Amaranth's own reset of a domain is ``rst``, active high and synchronous; this builds the others.
    """

    def __init__(self, component: wiring.Component[Any], config: CduConfig) -> None:
        self.component, self.config = component, config
        self.domain: Any = ClockDomain(_DOMAIN, async_reset=config.reset_kind == "async")
        self.port = Signal(name=config.reset_port)

    @property
    def ports(self) -> dict[str, tuple[Value, PortDirection]]:
        """The two ports by name."""
        return {"clk": (self.domain.clk, PortDirection.Input), self.port.name: (self.port, PortDirection.Input)}

    def elaborate(self, platform: Any) -> Any:
        # No module around the component: its parts are called what they are called with any reset.
        whole: Any = Fragment.get(self.component, platform)  # type: ignore[no-untyped-call]
        whole.add_domains(self.domain)
        active = ~self.port if self.config.reset_active == "low" else self.port
        whole.add_statements("comb", [self.domain.rst.eq(active)])
        return whole


def has_own_reset(config: CduConfig) -> bool:
    """Whether the reset is another than Amaranth's own."""
    return (config.reset_active, config.reset_kind) != ("high", "sync")
