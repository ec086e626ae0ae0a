"""The compressing direction of N CDUs (JPEG-ACT, "CDU")."""

from __future__ import annotations

from cdu_spec.config import CduConfig

from cdu.alignment.alignment_buffer import Direction as Order
from cdu.transform.dct import Dct
from cdu.unit.compression_path import CompressionPath, CompressorPorts
from cdu.unit.direction import OneDirection


class Compressor(OneDirection):
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
        Two shift tables; a table must not change while a job in progress uses it.
    events
        :class:`~cdu.words.JobEvents`.
    idle
        No job is in progress.

    Rate: 8 * N values per cycle, as far as the ports are wide enough.
    """

    order = Order.TO_BLOCKS
    transform_name = "dct"

    def __init__(self, config: CduConfig) -> None:
        super().__init__(config, CompressorPorts(config))

    def path(self) -> CompressionPath:
        return CompressionPath(self.config)

    def transform(self) -> Dct:
        return Dct(self.config)
