"""All codecs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.near_names import advice, unknown

from actcodec.codecs.acgc.acgc_jpeg_codec import AcgcJpegCodec
from actcodec.codecs.acgc.acgc_sfpr_codec import AcgcSfprZvcCodec
from actcodec.codecs.acgc.cusz_codec import CuszCodec
from actcodec.codecs.acgc.fixed_point import AcgcQuantCodec, AcgcQuantZCodec
from actcodec.codecs.actnn.float_forms import ActnnFloatCodec
from actcodec.codecs.actnn.sample_groups import ActnnSampleCodec
from actcodec.codecs.actnn.sparse_groups import SparseSampleCodec
from actcodec.codecs.affine.affine_codecs import ActnnCodec, AutoquantCodec, AutoquantZCodec, BlpaCodec, DivisionCodec
from actcodec.codecs.baselines.bf16_codec import Bf16Codec
from actcodec.codecs.baselines.cdma_codec import CdmaCodec
from actcodec.codecs.baselines.gist_codec import GistCodec, GistCsrCodec
from actcodec.codecs.baselines.int8_rows_codec import Int8RowsCodec
from actcodec.codecs.baselines.vdnn_codec import VdnnCodec
from actcodec.codecs.blpa.blpa_coded import BlpaCodedCodec
from actcodec.codecs.blpa.blpa_float import BlpaFloatCodec
from actcodec.codecs.blpa.feature_coded import FeatureCodedCodec
from actcodec.codecs.blpa.feature_klt import FeatureKltCodec
from actcodec.codecs.codec import BrcCodec, BypassCodec, Codec, JpegActCodec, JpegGmcCodec, NoCodec, SfprCodec, SfprZvcCodec
from actcodec.codecs.division.division_float import DivisionFloatCodec
from actcodec.codecs.jpeg.jpeg_base_codec import JpegBaseCodec
from actcodec.codecs.mx.mx_codec import (
    MxFp4Codec,
    MxFp6E2m3Codec,
    MxFp6E3m2Codec,
    MxFp8E4m3Codec,
    MxFp8E5m2Codec,
    MxInt8Codec,
    Nvfp4Codec,
)

_JPEG_ACT = (JpegActCodec, JpegGmcCodec, SfprCodec, SfprZvcCodec, BrcCodec, BypassCodec)
_AFFINE = (DivisionCodec, ActnnCodec, BlpaCodec, AutoquantCodec, AutoquantZCodec)
_SOFTWARE = (
    JpegBaseCodec,
    DivisionFloatCodec,
    ActnnFloatCodec,
    ActnnSampleCodec,
    SparseSampleCodec,
    BlpaFloatCodec,
    BlpaCodedCodec,
    FeatureCodedCodec,
    FeatureKltCodec,
    AcgcQuantCodec,
    AcgcQuantZCodec,
    CuszCodec,
    AcgcJpegCodec,
    AcgcSfprZvcCodec,
)
_BLOCK_SCALES = (MxInt8Codec, MxFp8E4m3Codec, MxFp8E5m2Codec, MxFp6E2m3Codec, MxFp6E3m2Codec, MxFp4Codec, Nvfp4Codec)
_BASELINES = (GistCodec, GistCsrCodec, CdmaCodec, VdnnCodec, Bf16Codec, Int8RowsCodec, NoCodec)
_CODECS: Mapping[str, Callable[..., Codec]] = {
    kind.name: kind for kind in (*_JPEG_ACT, *_AFFINE, *_SOFTWARE, *_BLOCK_SCALES, *_BASELINES)
}
#: Names that :func:`codec` accepts.
CODEC_NAMES = tuple(_CODECS)


def codec_options(name: str) -> dict[str, Any]:
    """Return names and default values of a codec's options; raise UserError for an unknown codec."""
    if not isinstance(name, str) or name not in _CODECS:
        raise UserError(unknown("codec", name, _CODECS))
    return {option.name: _default(option) for option in fields(_CODECS[name])}  # type: ignore[arg-type]


def _default(option: Field[Any]) -> Any:
    assert option.default is not MISSING, "every option of a codec has a default"
    return option.default


def codec(name: str, **options: Any) -> Codec:
    """Return a codec by name, with options.

    >>> codec("sfpr", S=1.0).name
    'sfpr'

    :data:`CODEC_NAMES` lists the names, :func:`codec_options` the options of each codec with their defaults; the pages in
    docs/methods describe them.

    Raises UserError for unknown names, options and values; the message lists the allowed ones.
    """
    allowed = codec_options(name)
    for option in options:
        if option not in allowed:
            choice = advice(option, allowed) if allowed else "it has none"
            raise UserError(f"codec {name!r} has no option {option!r}: {choice}")
    return _CODECS[name](**options)
