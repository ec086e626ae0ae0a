"""The whole unit: both halves of a CDU side by side."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped
from cdu_spec.config import CduConfig

from cdu.compressor import Compressor
from cdu.decompressor import Decompressor


class Cdu(wiring.Component):
    """One compression/decompression unit.

    Ports ``compress`` and ``decompress`` are those of :class:`~cdu.compressor.Compressor` and
    :class:`~cdu.decompressor.Decompressor`, which work independently.
    """

    compress: Any
    decompress: Any

    def __init__(self, config: CduConfig) -> None:
        self.compressor, self.decompressor = Compressor(config), Decompressor(config)
        super().__init__({"compress": Out(self.compressor.signature), "decompress": Out(self.decompressor.signature)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.compressor = self.compressor
        m.submodules.decompressor = self.decompressor
        connect(m, self.compressor, flipped(self.compress))
        connect(m, self.decompressor, flipped(self.decompress))
        return m
