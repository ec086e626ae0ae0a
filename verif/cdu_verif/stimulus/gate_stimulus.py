"""Stimulus of a netlist from real jobs, and the words that the golden model expects of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from actcodec.golden import blocks, dct, gmc, sfpr, shift_quantizer, zvc
from cdu.delivery.blocks import HALVES
from cdu_spec.coding import ShiftCoding, known
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import JPEG_GMC, Coder, Mode
from cdu_spec.port_fields import pack
from cdu_tools.errors import UserError
from cdu_tools.near_names import advice
from torch import Tensor

from cdu_verif import blocks as records
from cdu_verif.cases import block_streams
from cdu_verif.cases import gmc as gmc_cases
from cdu_verif.cases.case import Case
from cdu_verif.content.tensors import Exchange
from cdu_verif.stimulus.vectors import transfers

#: Codecs that JPEG-ACT's table has tensors for (jpeg-gmc codes those of jpeg-act), with mode and coder of their jobs.
CODECS: Mapping[str, tuple[Mode, Coder]] = {
    Mode.JPEG_ACT.label: (Mode.JPEG_ACT, Coder.ZVC),
    JPEG_GMC: (Mode.JPEG_ACT, Coder.GMC),
    Mode.SFPR_ZVC.label: (Mode.SFPR_ZVC, Coder.ZVC),
}
#: Blocks in the path of jpeg-act and jpeg-gmc.
TRANSFORM_BLOCKS = ("dct", "shift_quantizer", "inverse_shift_quantizer", "idct")
#: Blocks that all codecs with their coder use.
CODER_BLOCKS: Mapping[str, Coder] = {
    "zvc_encoder": Coder.ZVC,
    "zvc_decoder": Coder.ZVC,
    "gmc_encoder": Coder.GMC,
    "gmc_decoder": Coder.GMC,
}
#: Top modules for which stimuli can be made.
TOPS = (*HALVES, *TRANSFORM_BLOCKS, *CODER_BLOCKS)

Ports = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class GateStimulus:
    """Input and expected words by stream, bits of the constant inputs, and the number of values that they stand for."""

    inputs: Mapping[str, Sequence[int]]
    expected: Mapping[str, Sequence[int]]
    settings: Mapping[str, int]
    values: int


def check(top: str, codecs: Sequence[str], config: CduConfig) -> None:
    """Raise UserError for a combination that cannot be measured.

    That is a codec that is not in :data:`CODECS` or whose mode or coder is not built in, and a top without a stimulus or used
    by none of the codecs.
    """
    if top not in TOPS:
        raise UserError(f"block {top!r} cannot be played to: {advice(top, TOPS)}")
    for name in codecs:
        if name not in CODECS:
            raise UserError(
                f"codec {name!r} has no tensors in JPEG-ACT's table that power is measured with: {advice(name, CODECS)}"
            )
        mode, coder = CODECS[name]
        if mode not in config.built_modes:
            raise UserError(f"unit {config.unit_name} is built without mode {mode.label}: use {', '.join(config.modes)}")
        if mode.has_dct and coder not in config.built_coders:
            without = f"unit {config.unit_name} is built without coder {coder.label}, which codec {name} needs"
            raise UserError(f"{without}: use --set coders={coder.label}, or zvc,gmc for both")
    if not any(has_use(top, name) for name in codecs):
        raise UserError(f"block {top!r} has nothing to do in {', '.join(codecs)}: use another codec")


def has_use(top: str, codec: str) -> bool:
    """Return whether a codec's values pass a half or a block."""
    mode, coder = CODECS[codec]
    return (mode.has_dct or top not in TRANSFORM_BLOCKS) and CODER_BLOCKS.get(top, coder) is coder


def gate_stimulus(top: str, config: CduConfig, ports: Ports, items: Sequence[tuple[Exchange, MatrixView]]) -> GateStimulus:
    """Return the stimulus of a compressor, a decompressor or a block of their data path.

    Parameters
    ----------
    top
        One of :data:`TOPS`.
    config
        Configuration that the netlist was made for.
    ports
        Ports of its manifest by name.
    items
        Jobs of one codec with one shift table (:func:`cdu_verif.stimulus.recorded_jobs.exchanges`), played in this order.

    :func:`check` and :func:`has_use` must allow the top and the codec.
    """
    values = sum(item.beats.numel() for item, _ in items)
    if top in HALVES:
        parts = [transfers(top, ports, item, 0) for item, _ in items]
        joined = {name: [word for part in parts for word in part[name]] for name in parts[0]}
        expected = {"o": joined.pop("o")}
        shifts = items[0][0].compression.shifts or (0,) * BLOCK_VALUES
        settings = {"shifts": pack(dict(ports["shifts"]), [*shifts, *(0 for _ in shifts)])}
        return GateStimulus(joined, expected, settings, values)
    cases = [_block_case(top, config, ports, item, view) for item, view in items]
    constant = {name: pack(dict(ports[name]), value) for name, value in cases[0].settings.items()}
    inputs = [word for case in cases for word in case.inputs["i"]]
    outputs = [word for case in cases for word in case.expected["o"]]
    return GateStimulus({"i": inputs}, {"o": outputs}, constant, values)


def _block_case(top: str, config: CduConfig, ports: Ports, item: Exchange, view: MatrixView) -> Case:
    """Return one job at one block, whose inputs come from the golden functions of the blocks before it."""
    cases: Any = records.cases(top)
    if top in CODER_BLOCKS:
        payload, count = torch.frombuffer(bytearray(item.payload), dtype=torch.uint8), item.beats.numel() // BLOCK_VALUES
        if CODER_BLOCKS[top] is Coder.GMC:
            job = gmc_cases.job(gmc.decode(payload, count), point=known(item.decompression.how, ShiftCoding).point)
        else:
            job = block_streams.job(zvc.decode(payload, count).reshape(-1, LANES), Mode.SFPR_ZVC)
        found: Case = cases.case(ports, item.name, job)
        return found
    matrix = blocks.from_beats(item.beats, view)
    rows = torch.arange(len(matrix)) // item.compression.channel_rows
    samples = blocks.tiles(sfpr.sfpr(matrix, item.compression.scales[rows, None])).reshape(-1, 8, 8)
    if top == "dct":
        return _transform(cases, config, ports, item.name, samples)
    shifts = torch.tensor(item.compression.shifts)
    coefficients = blocks.to_payload_order(dct.dct(samples.to(torch.int16), config.const_bits, config.pass1_bits))
    coefficients = coefficients.reshape(-1, BLOCK_VALUES)
    quantized = shift_quantizer.quantize(coefficients.to(torch.int32), shifts, config.rounding_mode)
    if top == "idct":
        restored = shift_quantizer.inverse(quantized, shifts)
        return _transform(cases, config, ports, item.name, restored.reshape(-1, 8, 8).transpose(1, 2))
    entering = coefficients if top == "shift_quantizer" else quantized
    last: Case = cases.case(config, ports, item.name, entering, shifts)
    return last


def _transform(cases: Any, config: CduConfig, ports: Ports, name: str, values: Tensor) -> Case:
    found: Case = cases.case(config, ports, name, values)
    return found
