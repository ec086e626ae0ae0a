"""Memory with a write and a read port: the only place where a unit may have an SRAM."""

from __future__ import annotations

from amaranth.hdl import ClockSignal, Instance, Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

#: The module that delivered Verilog has for every memory, behind the name of the top; its parameters are WIDTH, DEPTH and
#: ADDRESS_BITS.
RAM_MODULE = "__ram_1r1w"


class Delivery:
    """Platform of delivered Verilog: memories are instances of :data:`RAM_MODULE` of the module ``top``.

    ``sizes`` has width and depth of every elaborated memory.
    """

    def __init__(self, top: str) -> None:
        self.ram_module = f"{top}{RAM_MODULE}"
        self.sizes: list[tuple[int, int]] = []


class Ram(wiring.Component):
    """Memory of ``depth`` words of ``width`` bits; both ports are synchronous, like those of a compiled SRAM.

    Parameters
    ----------
    width
        Bits of a word.
    depth
        Words, 2 or more.

    Ports
    -----
    write_enable, write_address, write_data
        The written word can be read from the next cycle on.
    read_enable, read_address, read_data
        The word is at ``read_data`` from the next cycle until the next read.

    A word must not be read in the cycle in which it is written, nor before it was ever written. Nothing is reset.
    """

    write_enable: Signal
    write_address: Signal
    write_data: Signal
    read_enable: Signal
    read_address: Signal
    read_data: Signal

    def __init__(self, width: int, depth: int) -> None:
        self.width, self.depth = width, depth
        address = Shape.cast(range(depth))
        super().__init__(
            {
                "write_enable": In(1),
                "write_address": In(address),
                "write_data": In(width),
                "read_enable": In(1),
                "read_address": In(address),
                "read_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if isinstance(platform, Delivery):
            platform.sizes.append((self.width, self.depth))
            m.submodules.ram = Instance(
                platform.ram_module,
                p_WIDTH=self.width,
                p_DEPTH=self.depth,
                p_ADDRESS_BITS=len(self.write_address),
                i_clk=ClockSignal(),
                i_write_enable=self.write_enable,
                i_write_address=self.write_address,
                i_write_data=self.write_data,
                i_read_enable=self.read_enable,
                i_read_address=self.read_address,
                o_read_data=self.read_data,
            )
            return m
        words: Memory
        m.submodules.words = words = Memory(shape=self.width, depth=self.depth, init=[])
        write = words.write_port()
        read = words.read_port()
        m.d.comb += [
            write.en.eq(self.write_enable),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
            read.en.eq(self.read_enable),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
        ]
        return m
