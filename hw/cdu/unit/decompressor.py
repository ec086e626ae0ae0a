"""The decompressing direction of N CDUs (JPEG-ACT, "CDU")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import connect
from cdu_spec.config import CduConfig

from cdu.alignment.alignment_buffer import AlignmentBuffer, Direction
from cdu.parts.join import join_ports
from cdu.transform.idct import Idct
from cdu.unit.decompression_path import DecompressionPath, DecompressorPorts


class Decompressor(wiring.Component):
    """Splitter, N lanes of decoder, inverse shift quantiser and inverse DCT, alignment buffer, affine dequantiser, inverse
    SFPR: payload in, values out.

    Parameters
    ----------
    config
        All parameters are used but ``duplex``, ``scale_bits`` and ``rounding``.

    Ports
    -----
    job
        Stream of :class:`~cdu.words.Job`, one per tensor, as in :class:`~cdu.unit.compressor.Compressor`.
    scales
        Stream of :class:`~cdu.words.Scale`: reciprocals r, as in :class:`~cdu.unit.compressor.Compressor`.
    i
        Stream of :class:`~cdu.words.PackedWord`: the payload.
    o
        Stream of :class:`~cdu.words.ValueWord`: ``beats`` per job, padding included, in the order of
        ``docs/reference/bitstream.md``.
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
        super().__init__(DecompressorPorts(config))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.path = path = DecompressionPath(self.config)
        if self.config.has_tiles:
            m.submodules.alignment = alignment = AlignmentBuffer(self.config, Direction.TO_ROWS)
            connect(m, path.to_alignment, alignment.i)
            connect(m, alignment.o, path.from_alignment)
        if self.config.has_dct:
            for lane in range(self.config.cdus):
                m.submodules[f"idct{lane}"] = idct = Idct(self.config)
                connect(m, path.to_transform[lane], idct.i)
                connect(m, idct.o, path.from_transform[lane])
        join_ports(m, self, path)
        return m
