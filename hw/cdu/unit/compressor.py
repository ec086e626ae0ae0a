"""The compressing direction of N CDUs (JPEG-ACT, "CDU")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import connect
from cdu_spec.config import CduConfig

from cdu.alignment.alignment_buffer import AlignmentBuffer, Direction
from cdu.parts.join import join_ports
from cdu.transform.dct import Dct
from cdu.unit.compression_path import CompressionPath, CompressorPorts


class Compressor(wiring.Component):
    """SFPR, alignment buffer, N lanes of DCT, quantisers and coder, collector: values in, payload out.

    Parameters
    ----------
    config
        All parameters are used but ``duplex``.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, one per tensor. Jobs follow each other without an idle cycle when the next one is
        offered in time; settings travel with the data, nothing drains in between.
    scales
        Stream of :class:`~cdu.words.Scale`: multipliers k, one per channel in the order of the rows, repeated for every
        sample of the batch, channels that begin in the padding included. Not used in the modes brc and bypass.
    i
        Stream of :class:`~cdu.words.ValueWord`: ``beats`` per job, padding (zeros) included, in the order of
        ``docs/reference/bitstream.md``.
    o
        Stream of :class:`~cdu.words.PackedWord`: the payload.
    shifts
        Two shift tables; a table must not change while a job under way uses it.
    events
        :class:`~cdu.words.JobEvents`.
    idle
        No job is under way.

    Rate: 8 * N values per cycle, as far as the ports are wide enough.
    """

    job: stream.Interface
    scales: stream.Interface
    i: stream.Interface
    o: stream.Interface
    shifts: Any
    events: Any
    idle: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(CompressorPorts(config))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.path = path = CompressionPath(self.config)
        if self.config.has_tiles:
            m.submodules.alignment = alignment = AlignmentBuffer(self.config, Direction.TO_BLOCKS)
            connect(m, path.to_alignment, alignment.i)
            connect(m, alignment.o, path.from_alignment)
        if self.config.has_dct:
            for lane in range(self.config.cdus):
                m.submodules[f"dct{lane}"] = dct = Dct(self.config)
                connect(m, path.to_transform[lane], dct.i)
                connect(m, dct.o, path.from_transform[lane])
        join_ports(m, self, path)
        return m
