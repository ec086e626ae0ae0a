"""Keeps out of a unit what none of its modes uses."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream
from cdu_spec.config import CduConfig


def join_jobs(m: Module, config: CduConfig, source: stream.Interface, sink: stream.Interface) -> None:
    """Connect streams of :class:`~cdu.words.Job`; fields that no built mode uses are constant, so that they cost no gates.

    ``sink`` sees of the mode as many bits as the built modes need.
    """
    job, seen = source.payload, sink.payload
    m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready), seen.eq(job)]
    m.d.comb += seen.mode.eq(job.mode[: max(config.built_modes).bit_length()])
    if not config.has_affine:
        m.d.comb += [seen.quantizer.eq(0), seen.seed.eq(0)]
