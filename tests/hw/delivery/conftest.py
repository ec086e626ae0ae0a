"""A small component with everything that generated Verilog can hold: streams, a memory, a submodule, nested payloads."""

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu.delivery import generator
from cdu_spec import CduConfig

PIXEL = data.StructLayout({"level": signed(5), "kind": 3})
ROW = data.StructLayout(
    {
        "values": data.ArrayLayout(signed(8), 8),
        "grid": data.ArrayLayout(data.ArrayLayout(4, 2), 3),
        "pixels": data.ArrayLayout(PIXEL, 2),
        "first": PIXEL,
        "last": 1,
    }
)


class Sum(wiring.Component):
    """Sum of a row, looked up and stored in a memory."""

    latency = 1

    def __init__(self):
        super().__init__({"i": In(stream.Signature(ROW)), "o": Out(stream.Signature(signed(12)))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=signed(12), depth=8, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        address = Signal(3)
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            write.addr.eq(address),
            write.data.eq(sum(self.i.p["values"][lane] for lane in range(8))),
            write.en.eq(self.i.valid & self.i.ready),
            read.addr.eq(self.i.p.first.kind),
        ]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), address.eq(address + 1)]
            with m.Switch(self.i.p.pixels[0].kind):
                with m.Case(0, 5):
                    m.d.sync += self.o.payload.eq(read.data)
                with m.Case(1):
                    m.d.sync += self.o.payload.eq(-read.data)
                with m.Case(2):
                    m.d.sync += self.o.payload.eq(self.i.p.pixels[1].level)
                with m.Default():
                    m.d.sync += self.o.payload.eq(write.data)
        return m


class Small(wiring.Component):
    """The sum as a submodule, and ports of the rarer kinds."""

    latency = 1

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(ROW)),
                "o": Out(stream.Signature(signed(12))),
                "marks": In(stream.Signature(7, always_ready=True)).array(2),
                "busy": Out(1),
                "lookup": In(data.ArrayLayout(3, 4)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.sum = inner = Sum()
        connect(m, flipped(self.i), inner.i)
        connect(m, inner.o, flipped(self.o))
        m.d.sync += self.busy.eq(self.marks[0].valid & (self.marks[1].payload != self.lookup[2]))
        return m


class _Generated(dict):
    """Blocks of the default configuration by their names, each generated when it is first asked for."""

    def __missing__(self, name):
        self[name] = generator.kept(CduConfig(), name)
        return self[name]


@pytest.fixture(scope="session")
def generated():
    """Every block, and the whole unit under None, in the default configuration."""
    return _Generated()


@pytest.fixture
def small():
    return Small()
