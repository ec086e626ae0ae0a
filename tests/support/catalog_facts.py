"""What the conformance rows ask of a codec, found out from the codec itself: a codec is covered by being registered."""

import os
from collections.abc import Callable
from functools import cache

import actcodec
import torch
from actcodec.codecs import CODEC_NAMES, Codec, codec_options
from actcodec.codecs.jpeg.block_codec import BlockCodec
from cdu_spec.dqt import divisors
from cdu_tools.errors import UserError

#: The variable that says what computes codecs, of which only those with such a choice then count; else it is what they choose.
BACKEND = "CDU_TEST_BACKEND"
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
NAMES = tuple(name for name in CODEC_NAMES if BACKEND not in os.environ or "backend" in codec_options(name))
#: Every number of bits that any codec could have.
_CONCEIVABLE = range(1, 33)
#: Options that choose the number of bits, and how a number of bits is written there.
_WIDTH_OPTIONS: dict[str, Callable[[int], object]] = {"bits": int, "dpr": "fp{}".format}


def _width_option(name: str) -> str | None:
    return next((option for option in _WIDTH_OPTIONS if option in codec_options(name)), None)


@cache
def widths(name: str) -> tuple[int | None, ...]:
    """The numbers of bits per value that a codec takes; (None,) for a codec without a choice."""
    if _width_option(name) is None:
        return (None,)
    return tuple(bits for bits in _CONCEIVABLE if _exists(name, bits))


def _exists(name: str, bits: int) -> bool:
    try:
        make(name, bits)
    except UserError:
        return False
    return True


def make(name: str, bits: int | None = None, **options) -> Codec:
    """A codec of some width, computed by ``$CDU_TEST_BACKEND`` where it is set."""
    if bits is not None:
        options |= _width(name, bits)
    if BACKEND in os.environ:
        options = {"backend": os.environ[BACKEND], **options}
    return actcodec.codec(name, **options)


def _width(name: str, bits: int) -> dict[str, object]:
    option = _width_option(name)
    assert option is not None
    return {option: _WIDTH_OPTIONS[option](bits)}


def change_width(codec: Codec, bits: int) -> None:
    """Give a codec object another width, as its user could."""
    for option, value in _width(codec.name, bits).items():
        setattr(codec, option, value)


#: Every codec with every width.
VARIANTS = tuple((name, bits) for name in NAMES for bits in widths(name))
VARIANT_IDS = tuple(name if bits is None else f"{name}-{bits}" for name, bits in VARIANTS)


def keeps_values(name: str) -> bool:
    """Whether a codec keeps more than signs."""
    return not make(name).signs_only


def is_stochastic(name: str) -> bool:
    """Whether a codec rounds at random unless told otherwise."""
    return codec_options(name).get("rounding") == "stochastic"


@cache
def is_lossless(name: str) -> bool:
    """Whether a codec brings back what no lossy codec does: arbitrary numbers of any magnitude, to the last bit."""
    x = torch.randn(2, 4, 16, 16) * 2.0 ** torch.randint(-60, 60, (2, 4, 16, 16))
    codec = make(name)
    return torch.equal(codec.decompress(codec.compress(x)), x)


def has_option(name: str, option: str) -> bool:
    """Whether a codec has an option."""
    return option in codec_options(name)


@cache
def follows_magnitude(name: str, bits: int | None) -> bool:
    """Whether a codec's range goes with the values; a format of fixed range turns small ones to zero and limits large ones."""
    codec = make(name, bits)
    return bool(codec.decompress(codec.compress(torch.randn(2, 4, 16, 16) * 2.0**-30)).any())


def greatest_divisor(name: str) -> int:
    """Of the coefficients of a codec that transforms 8x8 blocks; that of optL for any other, to which it means nothing."""
    codec = make(name)
    return max(divisors(codec.table if isinstance(codec, BlockCodec) else "optL"))


def transforms_blocks(name: str) -> bool:
    """Whether a codec transforms 8x8 blocks, which it fills up with zeros at the edges of a map."""
    return isinstance(make(name), BlockCodec)
