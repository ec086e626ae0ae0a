"""Tests of the registers by an independent model: NAME.rdl as systemrdl-compiler (optional) reads it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cdu.delivery.register_models import compiled
from cdu_spec.config import CduConfig
from cdu_spec.register_blocks import register_blocks
from cdu_spec.register_types import REGISTER_BITS, REGISTER_BYTES

from cdu_verif.simulation.axi_ports import Registers
from cdu_verif.simulation.bench import Bench
from cdu_verif.simulation.bench_test import bench_test

_NO_COMPILER = find_spec("systemrdl") is None
_ALL_ONES = (1 << REGISTER_BITS) - 1


@dataclass(frozen=True)
class Modelled:
    """A register in the model: values that software reads and writes, bit by bit."""

    path: str
    address: int
    readable: bool
    reset: int  #: value read after a reset
    kept: int  #: bits that read as they were written
    cleared: int  #: bits that writing 1 clears


class ModelBench(Bench):
    """One simulated top with registers; parameters as in :class:`~cdu_verif.simulation.bench.Bench`."""

    def __init__(self, dut: Any, test: str) -> None:
        super().__init__(dut, test)
        self.bus = Registers(dut)
        self.model = _model(self.config)
        #: Registers whose fields take some numbers only, which the model does not say.
        self.known = {
            block.base + entry.offset + REGISTER_BYTES * index: entry
            for block in register_blocks(self.config)
            for entry in block.registers
            for index in range(entry.count)
        }

    async def expect(self, entry: Modelled, value: int) -> None:
        """Raise AssertionError if a register reads anything else."""
        found, response = await self.bus.raw_read(entry.address)
        assert not response, f"a read of {entry.path} at {entry.address:#x} was answered with {response}"
        assert found == value, f"{entry.path} at {entry.address:#x} reads {found:#x}, not {value:#x}"
        self.cases += 1

    def named(self, name: str) -> Modelled:
        """Return the register of the global block with this name."""
        (found,) = (entry for entry in self.model if entry.path.endswith(f".{name}"))
        return found

    async def clear(self, *others: Modelled) -> None:
        """Clear the sticky bits of all registers but the others."""
        for entry in self.model:
            if entry.cleared and entry not in others:
                await self.bus.raw_write(entry.address, entry.cleared)

    async def all_as_after_a_reset(self, *others: Modelled) -> None:
        """Raise AssertionError if a register other than the ``others`` has changed."""
        for entry in self.model:
            if entry not in others:
                await self.expect(entry, entry.reset)


def _model(config: CduConfig) -> list[Modelled]:
    from systemrdl.node import RegNode

    with tempfile.TemporaryDirectory(prefix="cdu-rdl-") as folder:
        nodes = compiled(config, Path(folder)).top.descendants(unroll=True)
        return [_modelled(node) for node in nodes if isinstance(node, RegNode)]


def _modelled(node: Any) -> Modelled:
    reset = kept = cleared = 0
    for part in node.fields():
        mask = ((1 << part.width) - 1) << part.low
        clears = part.get_property("onwrite") is not None
        reset |= part.get_property("reset") << part.low if part.is_sw_readable else 0
        kept |= mask if part.is_sw_readable and part.is_sw_writable and not clears else 0
        cleared |= mask if clears else 0
    return Modelled(node.get_path(), node.absolute_address, node.has_sw_readable, reset, kept, cleared)


@bench_test(ModelBench, skip=_NO_COMPILER)
async def resets_of_the_model(bench: ModelBench) -> None:
    """After a reset every register reads as in the model; bits of no field read 0."""
    await bench.all_as_after_a_reset()


@bench_test(ModelBench, skip=_NO_COMPILER)
async def what_the_model_keeps(bench: ModelBench) -> None:
    """Fields that can be read and written read what was written, random bits and their opposite, or refuse it; nothing else
    changes.
    """
    for entry in bench.model:
        written = bench.rng.getrandbits(REGISTER_BITS)
        for value in (written & entry.kept, ~written & entry.kept, entry.reset) if entry.kept else ():
            takes = bench.known[entry.address].takes(value)
            assert bool(await bench.bus.raw_write(entry.address, value)) is not takes, f"{entry.path} and {value:#x}"
            if takes:
                await bench.expect(entry, value)
    await bench.clear()
    await bench.all_as_after_a_reset(bench.named("BAD_ADDRESS"))


@bench_test(ModelBench, skip=_NO_COMPILER)
async def what_the_model_only_reads(bench: ModelBench) -> None:
    """Writes to read-only registers have no effect and set an error bit, which writing 1, but not 0, clears."""
    told, place = bench.named("BUS_ERRORS"), bench.named("BAD_ADDRESS")
    for entry in bench.model:
        if entry.readable and not entry.kept | entry.cleared:
            await bench.bus.raw_write(entry.address, _ALL_ONES)
            if entry is not place:
                await bench.expect(entry, entry.reset)
    await bench.clear(told)  # the engine reports a write to its own registers
    for written, left in ((0, told.cleared), (told.cleared, 0)):
        await bench.expect(told, told.cleared)
        await bench.bus.raw_write(told.address, written)
        await bench.expect(told, left)
    await bench.all_as_after_a_reset(place)
