"""The decompressing direction of N CDUs (JPEG-ACT, "CDU")."""

from __future__ import annotations

from cdu_spec.config import CduConfig

from cdu.alignment.alignment_buffer import Direction as Order
from cdu.transform.idct import Idct
from cdu.unit.decompression_path import DecompressionPath, DecompressorPorts
from cdu.unit.direction import OneDirection


class Decompressor(OneDirection):
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
        Two shift tables; a table must not change while a job in progress uses it.
    events
        :class:`~cdu.words.JobEvents`.
    idle
        No job is in progress.

    Rate: 8 * N values per cycle, as far as the ports are wide enough.
    """

    order = Order.TO_ROWS
    transform_name = "idct"

    def __init__(self, config: CduConfig) -> None:
        super().__init__(config, DecompressorPorts(config))

    def path(self) -> DecompressionPath:
        return DecompressionPath(self.config)

    def transform(self) -> Idct:
        return Idct(self.config)
