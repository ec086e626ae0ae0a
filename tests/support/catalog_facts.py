"""Facts about a codec for the conformance rows, found from the codec itself: registering a codec suffices to test it."""

import os
from collections.abc import Callable
from functools import cache

import actcodec
import torch
from actcodec.codecs import CODEC_NAMES, Codec, codec_options
from actcodec.codecs.jpeg.block_codec import BlockCodec
from cdu_spec.dqt import divisors
from cdu_tools.errors import UserError

#: Environment variable with the backend of codecs; only codecs with such a choice are then tested. Default: their own choice.
BACKEND = "CDU_TEST_BACKEND"
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
NAMES = tuple(name for name in CODEC_NAMES if BACKEND not in os.environ or "backend" in codec_options(name))
#: All numbers of bits that a codec could have.
_CONCEIVABLE = range(1, 33)
#: Options that choose the number of bits, and the form of that number in each.
_WIDTH_OPTIONS: dict[str, Callable[[int], object]] = {"bits": int, "dpr": "fp{}".format}


def _width_option(name: str) -> str | None:
    return next((option for option in _WIDTH_OPTIONS if option in codec_options(name)), None)


@cache
def widths(name: str) -> tuple[int | None, ...]:
    """Return the numbers of bits per value that a codec takes; (None,) for a codec without a choice."""
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
    """Return a codec of some width, computed by ``$CDU_TEST_BACKEND`` if it is set."""
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
    """Return whether a codec keeps more than signs."""
    return not make(name).signs_only


def is_stochastic(name: str) -> bool:
    """Return whether a codec rounds at random by default."""
    return codec_options(name).get("rounding") == "stochastic"


@cache
def is_lossless(name: str) -> bool:
    """Return whether a codec restores arbitrary numbers of any magnitude to the last bit."""
    x = torch.randn(2, 4, 16, 16) * 2.0 ** torch.randint(-60, 60, (2, 4, 16, 16))
    codec = make(name)
    return torch.equal(codec.decompress(codec.compress(x)), x)


def has_option(name: str, option: str) -> bool:
    """Return whether a codec has an option."""
    return option in codec_options(name)


@cache
def follows_magnitude(name: str, bits: int | None) -> bool:
    """Return whether a codec's range adapts to the values; a fixed range turns small ones to zero and limits large ones."""
    codec = make(name, bits)
    return bool(codec.decompress(codec.compress(torch.randn(2, 4, 16, 16) * 2.0**-30)).any())


def greatest_divisor(name: str) -> int:
    """Return the greatest divisor of the coefficients of a codec of 8x8 blocks; of optL for others, which ignore it."""
    codec = make(name)
    return max(divisors(codec.table if isinstance(codec, BlockCodec) else "optL"))


def transforms_blocks(name: str) -> bool:
    """Return whether a codec transforms 8x8 blocks, which it pads with zeros at the edges of a map."""
    return isinstance(make(name), BlockCodec)
