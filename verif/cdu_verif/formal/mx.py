"""Proofs of the encoder and decoder of MX against the definition of the formats."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from cdu.parts.mx_words import BLOCK_ROWS, CODE_BITS, FORMAT_BITS
from cdu.values.mx_element import BlockTerms, WaitingValue, code_of, kept_bits, magnitude_key, shifted_value
from cdu_spec.geometry import LANES
from cdu_spec.modes import Dtype
from cdu_spec.mx import BlockFormat

from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice, harness
from cdu_verif.formal.stream_rules import stream_harness, with_assumptions

#: Signals of the line of rows in the encoder that proofs observe, with their bits.
LINE_PROBES = {"waiting": BLOCK_ROWS, "left": BLOCK_ROWS.bit_length(), "number": (BLOCK_ROWS - 1).bit_length(), "heads": 1}


class CodedValue(wiring.Component):
    """Arithmetic of :mod:`cdu.values.mx_element` between ports, without registers.

    Ports
    -----
    value, most
        A float32 pattern, and the one of the greatest magnitude of its block.
    format, rceil
        Format and scale rule, as for the encoder.
    code
        Code of the value.
    """

    value: Signal
    most: Signal
    format: Signal
    rceil: Signal
    code: Signal

    def __init__(self) -> None:
        bits = Dtype.FP32.bits
        super().__init__(
            {"value": In(bits), "most": In(bits), "format": In(FORMAT_BITS), "rceil": In(1), "code": Out(CODE_BITS)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        block = BlockTerms.of(m, self.format, self.rceil, magnitude_key(m, self.most, self.format, 0))
        shifted = shifted_value(m, data.View(WaitingValue(), kept_bits(self.value)), block, 0)
        m.d.comb += self.code.eq(code_of(m, shifted, self.format, 0))
        return m


def line_rules(device: BoundDevice) -> str:
    """Return a harness of the stream rules, with the invariants of the encoder's counters."""
    return stream_harness(device, body=instance("mx_encoder_rules", {"ROWS": BLOCK_ROWS}, {}))


def encoder_harness(kind: BlockFormat, blocks: int, device: BoundDevice) -> str:
    """Return a harness for order and scales of the first blocks, any one of which has this format and either rule."""
    parameters = _scale(kind) | {
        "LANES": LANES,
        "ROWS": BLOCK_ROWS,
        "BLOCKS": blocks,
        "FORMAT": kind.number,
        "BITS": kind.bits,
    }
    ports = {
        **fields(device, "i__payload", "values", "format", "rceil"),
        **fields(device, "o__payload", "scale", "codes", "heads", "format"),
    }
    return with_assumptions(device, instance("mx_encoder_block", parameters, ports), resets=False)


def element_harness(kind: BlockFormat, device: BoundDevice) -> str:
    """Return a harness for codes of :class:`CodedValue` in this format."""
    parameters = _scale(kind) | _element(kind) | {"FORMAT": kind.number, "OCTAVES": kind.emax - kind.emin}
    return harness(device, instance("mx_element_rules", parameters, {}))


def decoder_harness(kind: BlockFormat, device: BoundDevice) -> str:
    """Return a harness: every lane of every transfer is the product of code and scale, from the first block's head on."""
    parameters = _element(kind) | {"LANES": LANES, "FORMAT": kind.number, "INFINITE": int(kind.has_infinity)}
    ports = {**fields(device, "i__payload", "scale", "codes", "heads", "format"), "o_values": "o__payload"}
    return with_assumptions(device, instance("mx_decoder_rules", parameters, ports))


def _scale(kind: BlockFormat) -> dict[str, int]:
    """Return the parameters of ``harness/mx_scale_reference.sv``."""
    return {"FRACTION_BITS": kind.fraction_bits, "EMAX": kind.emax, "FRACTION": kind.greatest_fraction}


def _element(kind: BlockFormat) -> dict[str, int]:
    """Return the parameters that ``harness/mx_element_reference.sv`` shares with the decoder's rules."""
    return {
        "FRACTION_BITS": kind.fraction_bits,
        "BIAS": -kind.emin,
        "GREATEST": kind.greatest,
        "INTEGER": int(kind.is_integer),
        "BITS": kind.bits,
    }
