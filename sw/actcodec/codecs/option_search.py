"""Finding the option of a codec that keeps to a largest error, or comes to a compression ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from cdu_spec.affine import CODE_BITS
from cdu_spec.bitstream import JPEG_BASE, STREAM_NAMES
from cdu_spec.dqt import LEAST_SHIFT, MAX_DIVISOR, MAX_SHIFT
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.catalog import codec, codec_options
from actcodec.codecs.compressed import Packed
from actcodec.codecs.reconstruction_error import reconstruction_error


@dataclass(frozen=True)
class Goal:
    """What a search keeps to: a largest error or a compression ratio, one of the two.

    Parameters
    ----------
    max_error
        Bound of ``max |y - x|``; the search takes the fewest bytes that keep to it.
    ratio
        Least ratio of the tensor's bytes to those of its stream; the search takes the least error that comes to it.
    """

    max_error: float | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        if self.max_error is not None and self.ratio is not None:
            raise UserError("--max-error and --ratio are two goals: give one of them")
        if not 0 < self._bound < inf:
            raise UserError(f"{self.option} {self._bound:g} is not allowed: use a positive number")

    @property
    def option(self) -> str:
        """The option of the command line that gives it."""
        return "--ratio" if self.max_error is None else "--max-error"

    @property
    def _bound(self) -> float:
        bound = self.ratio if self.max_error is None else self.max_error
        assert bound is not None, "a goal has a bound"
        return bound

    def settings(self, name: str, options: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
        """The option to find and its values, those that keep to the goal most easily first.

        UserError for a codec without such an option, and where ``options`` have it already.
        """
        if (found := ladder(name)) is None:
            others = ", ".join(one for one in STREAM_NAMES if ladder(one) is not None)
            raise UserError(f"codec {name!r} has no option that {self.option} could find: use {others}")
        option, values = found
        if option in options:
            raise UserError(f"{self.option} finds --{option}: leave one of the two out")
        return option, values if self.max_error is not None else values[::-1]

    def measured(self, x: Tensor, packed: Packed, backend: Backend) -> tuple[float, bool]:
        """The number that the goal bounds, and whether the compressed tensor keeps to it."""
        if self.max_error is None:
            ratio = x.numel() * x.element_size() / packed.nbytes
            return ratio, ratio >= self._bound
        error = reconstruction_error(x, packed.decompress(backend)).largest
        return error, error <= self._bound


@dataclass(frozen=True)
class Found:
    """A tensor compressed with the option that was found."""

    packed: Packed
    options: dict[str, Any]  #: the option by its name


def ladder(name: str) -> tuple[str, Sequence[Any]] | None:
    """The option that trades error for bytes and its values, least error first; None for a codec without such an option."""
    options = codec_options(name)
    if "dqt" in options:
        powers = [1 << shift for shift in range(LEAST_SHIFT, MAX_SHIFT + 1)]
        return "dqt", [f"uniform-{step}" for step in (range(1, MAX_DIVISOR + 1) if name == JPEG_BASE else powers)]
    if "bits" in options:
        return "bits", sorted(CODE_BITS, reverse=True)
    return None


def search(
    x: Tensor, name: str, options: Mapping[str, Any], backend: Backend, goal: Goal, original: Tensor | None = None
) -> Found:
    """Compresses a tensor with the option that keeps to a goal.

    Parameters
    ----------
    x
        A tensor that the codec takes.
    name, options
        The codec and its other options.
    backend
        Computes the codec.
    goal
        The result is measured, so it keeps to the goal.
    original
        The values and the bytes to compare with, where ``x`` was cast from another number format.

    Settings are tried by bisection, which supposes that coarser ones have fewer bytes and greater errors. UserError where
    not even the first setting keeps to the goal: it says what that one comes to.
    """
    option, values = goal.settings(name, options)
    best: Found | None = None
    low, high = 0, len(values)  # settings below low keep to the goal, those from high on do not
    while low < high:
        middle = (low + high) // 2 if best else 0
        setting = {option: values[middle]}
        packed = codec(name, backend=backend, **options, **setting).compress(x)
        number, kept = goal.measured(x if original is None else original, packed, backend)
        if kept:
            best, low = Found(packed, setting), middle + 1
        elif best:
            high = middle
        else:
            raise UserError(
                f"codec {name!r} does not keep to {goal.option}: it comes to {number:.3g} with --{option} {values[middle]}; "
                "use another bound or another codec"
            )
    assert best is not None, "a ladder has settings"
    return best
