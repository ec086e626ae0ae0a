"""Block coders of a lane: one for the modes as published, and GMC's beside it where it is built in."""

from __future__ import annotations

from typing import TypeAlias

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from cdu_spec.config import CduConfig

from cdu.coding.block_decoder import BlockDecoder
from cdu.coding.block_encoder import BlockEncoder
from cdu.coding.gmc_decoder import GmcDecoder
from cdu.coding.gmc_encoder import GmcEncoder
from cdu.words import is_gmc

#: Blocks that can be in a coder at the same time, a power of two less one; no coder holds more.
_MOST_INSIDE = 15

Encoder: TypeAlias = "BlockEncoder | GmcEncoder | CoderPair"
Decoder: TypeAlias = "BlockDecoder | GmcDecoder | CoderPair"


def encoder(config: CduConfig) -> Encoder:
    """Return the encoder of a lane, which packs rows into blocks."""
    if not config.has_gmc:
        return BlockEncoder(config)
    return CoderPair(config, BlockEncoder(config), GmcEncoder(config)) if config.packed_modes else GmcEncoder(config)


def decoder(config: CduConfig) -> Decoder:
    """Return the decoder of a lane, which expands packed blocks to rows."""
    if not config.has_gmc:
        return BlockDecoder(config)
    return CoderPair(config, BlockDecoder(config), GmcDecoder(config)) if config.packed_modes else GmcDecoder(config)


class CoderPair(wiring.Component):
    """Two coders, one of which codes each block; blocks leave in the order in which they arrived.

    Parameters
    ----------
    config
        ``modes``, ``coders``.
    packed, gmc
        Coder of all blocks but those of GMC, and coder of blocks of GMC: both encoders or both decoders.

    Ports: ``i`` and ``o``, streams as those of ``packed``; blocks of GMC have zeros where others have ranges.

    A block waits until all blocks in the other coder have left, so that cycles are lost only between jobs. Adds no latency.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig, packed: BlockEncoder | BlockDecoder, gmc: GmcEncoder | GmcDecoder) -> None:
        self.config, self.packed, self.gmc = config, packed, gmc
        super().__init__(dict(packed.signature.members.items()))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.other, m.submodules.gmc = packed, gmc = self.packed, self.gmc
        wanted = Signal()
        chosen = Signal()
        inside = Signal(range(_MOST_INSIDE + 1))
        begins = Signal(init=1)  # the next transfer is the first one of a block
        enters = Signal()
        leaves = Signal()
        changes = Signal()
        allowed = Signal()
        m.d.comb += [
            wanted.eq(Mux(begins, is_gmc(self.config, self.i.payload["tag"]["mode"], self.i.payload["tag"]["how"]), chosen)),
            changes.eq((inside == 0) & ~self.o.valid),
            allowed.eq(~begins | changes | ((wanted == chosen) & (inside != _MOST_INSIDE))),
            self.i.ready.eq(allowed & Mux(wanted, gmc.i.ready, packed.i.ready)),
            self.o.valid.eq(Mux(chosen, gmc.o.valid, packed.o.valid)),
            enters.eq(self.i.valid & self.i.ready),
            leaves.eq(self.o.valid & self.o.ready & self.o.payload["ends"]),
        ]
        for coder, mine, shown in ((packed, ~wanted, ~chosen), (gmc, wanted, chosen)):
            m.d.comb += [coder.i.valid.eq(self.i.valid & allowed & mine), coder.o.ready.eq(self.o.ready & shown)]
            m.d.comb += [coder.i.payload[name].eq(self.i.payload[name]) for name, _ in coder.i.payload.shape()]
        m.d.comb += self.o.payload.eq(packed.o.payload)
        with m.If(chosen):
            fields = {name for name, _ in gmc.o.payload.shape()}
            for name, _ in self.o.payload.shape():
                m.d.comb += self.o.payload[name].eq(gmc.o.payload[name] if name in fields else 0)
        with m.If(enters):
            m.d.sync += [chosen.eq(wanted), begins.eq(self.i.payload["ends"])]
        # A decoder may give the last row of a block before it has taken the block's last bytes, which hold no data.
        m.d.sync += inside.eq(inside + (enters & begins) - leaves)
        return m
