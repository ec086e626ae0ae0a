"""The signals of an AXI4 port (ARM IHI 0022) as this engine uses it: bursts INCR of whole words, one ID per client."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.dma import MEMORY_ADDRESS_BITS, dma_register

#: Bytes that no burst crosses a multiple of.
BOUNDARY_BYTES = 4096
#: Words of the longest burst; AXI4 allows 256.
BURST_WORDS = 16
#: Bits of an ID.
ID_BITS = 4
#: AxBURST: addresses go up.
_INCREMENTING = 1
#: Signals of a request that its ring sets, with their bits: the fields of register ATTRIBUTES.
_ATTRIBUTES = {field.name: field.width for field in dma_register("ATTRIBUTES").fields}
_REQUEST = {
    "id": Out(ID_BITS),
    "addr": Out(MEMORY_ADDRESS_BITS),
    "len": Out(8),
    "size": Out(3),
    "burst": Out(2),
    **{name: Out(width) for name, width in _ATTRIBUTES.items()},
    "valid": Out(1),
    "ready": In(1),
}


class Burst(data.StructLayout):
    """A burst: address of its first word, of ``size`` bytes, and the words."""

    def __init__(self) -> None:
        super().__init__({"address": MEMORY_ADDRESS_BITS, "words": range(BURST_WORDS + 1)})


class Attributes(data.StructLayout):
    """AxCACHE, AxPROT, AxQOS and AxUSER of the requests of a ring, as in register ATTRIBUTES."""

    def __init__(self) -> None:
        super().__init__(_ATTRIBUTES)


def read_members(prefix: str, size: int) -> dict[str, wiring.Member]:
    """The channels AR and R of a port with words of ``size`` bytes, at the end that asks."""
    answer = {"id": In(ID_BITS), "data": In(8 * size), "resp": In(2), "last": In(1), "valid": In(1), "ready": Out(1)}
    return _named(prefix, "ar", _REQUEST) | _named(prefix, "r", answer)


def write_members(prefix: str, size: int) -> dict[str, wiring.Member]:
    """The channels AW, W and B."""
    words = {"data": Out(8 * size), "strb": Out(size), "last": Out(1), "valid": Out(1), "ready": In(1)}
    answer = {"id": In(ID_BITS), "resp": In(2), "valid": In(1), "ready": Out(1)}
    return _named(prefix, "aw", _REQUEST) | _named(prefix, "w", words) | _named(prefix, "b", answer)


def _named(prefix: str, channel: str, signals: dict[str, wiring.Member]) -> dict[str, wiring.Member]:
    return {f"{prefix}_{channel}{name}": member for name, member in signals.items()}


def join(m: Module, outer: Any, inner: Any, members: dict[str, wiring.Member]) -> None:
    """Connect a port of a component to that of a submodule, which has the same name."""
    for name, member in members.items():
        ends = getattr(outer, name), getattr(inner, name)
        m.d.comb += ends[0].eq(ends[1]) if member.flow is Out else ends[1].eq(ends[0])


def request(m: Module, port: Any, channel: str, size: int, advance: Value, valid: Value, client: Value, burst: Any) -> None:
    """Add a register stage in front of AR or AW (``channel`` with the prefix), which takes a burst when ``advance`` is high.

    ``port`` has the :class:`Attributes` of every client.
    """

    def signal(name: str) -> Any:
        return getattr(port, f"{channel}{name}")

    m.d.comb += [
        signal("size").eq(exact_log2(size)),
        signal("burst").eq(_INCREMENTING),
    ]
    attributes = data.View(Attributes(), Array(Value.cast(one) for one in port.attributes)[client])
    cache = attributes["cache"]
    with m.If(advance):
        m.d.sync += [
            signal("valid").eq(valid),
            signal("id").eq(client),
            signal("addr").eq(burst["address"]),
            signal("len").eq(burst["words"] - 1),
            *(signal(name).eq(attributes[name]) for name in ("prot", "qos", "user")),
            signal("cache").eq(Cat(cache[:2], cache[2:] & cache[1].replicate(2))),  # 4 codes of AxCACHE are reserved
        ]
