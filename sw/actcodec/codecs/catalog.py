"""All codecs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from cdu_spec.errors import UserError

from actcodec.codecs.affine_codecs import ActnnCodec, AutoquantCodec, AutoquantZCodec, BlpaCodec, DivisionCodec
from actcodec.codecs.codec import BrcCodec, BypassCodec, Codec, JpegActCodec, NoCodec, SfprCodec, SfprZvcCodec
from actcodec.codecs.float_forms import ActnnFloatCodec, DivisionFloatCodec
from actcodec.codecs.jpeg_base_codec import JpegBaseCodec
from actcodec.codecs.sample_groups import ActnnSampleCodec
from actcodec.codecs.sparse_groups import SparseSampleCodec

_JPEG_ACT = (JpegActCodec, SfprCodec, SfprZvcCodec, BrcCodec, BypassCodec)
_AFFINE = (DivisionCodec, ActnnCodec, BlpaCodec, AutoquantCodec, AutoquantZCodec)
_CODECS: Mapping[str, Callable[..., Codec]] = {
    kind.name: kind
    for kind in (
        *_JPEG_ACT,
        *_AFFINE,
        JpegBaseCodec,
        DivisionFloatCodec,
        ActnnFloatCodec,
        ActnnSampleCodec,
        SparseSampleCodec,
        NoCodec,
    )
}
#: Names that :func:`codec` takes.
CODEC_NAMES = tuple(_CODECS)


def codec_options(name: str) -> dict[str, Any]:
    """Names and default values of a codec's options; UserError for an unknown codec."""
    if name not in _CODECS:
        raise UserError(f"unknown codec {name!r}: use {', '.join(_CODECS)}")
    return {option.name: _default(option) for option in fields(_CODECS[name])}  # type: ignore[arg-type]


def _default(option: Field[Any]) -> Any:
    assert option.default is not MISSING, "every option of a codec has a default"
    return option.default


def codec(name: str, **options: Any) -> Codec:
    """A codec by name, with options.

    ``jpeg-act`` (dqt, S, scale_bits, const_bits, pass1_bits, rounding, nonfinite, backend), ``sfpr`` and ``sfpr+zvc``
    (S, scale_bits, nonfinite, backend), ``brc`` (nonfinite, backend), ``bypass`` (backend), ``none``; ``division``, ``actnn``,
    ``blpa``, ``autoquant`` and ``autoquantz`` (bits, scale_bits, nonfinite, backend, and what their classes say);
    ``jpeg-base`` (as ``jpeg-act``, and huffman), of which hardware computes no more than SFPR; ``division-float``,
    ``actnn-float``, ``actnn-sample`` and ``sparse-sample`` (bits, rounding, seed ...), which no hardware computes. UserError
    for unknown names, options and values; the message lists the allowed ones.
    """
    allowed = codec_options(name)
    for option in options:
        if option not in allowed:
            choice = f"use {', '.join(allowed)}" if allowed else "it has none"
            raise UserError(f"codec {name!r} has no option {option!r}: {choice}")
    return _CODECS[name](**options)
