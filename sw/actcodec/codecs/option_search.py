"""Search for the option of a codec that keeps to a largest error or reaches a compression ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from cdu_spec.affine import CODE_BITS
from cdu_spec.dqt import LEAST_SHIFT, MAX_DIVISOR, MAX_SHIFT
from cdu_spec.modes import JPEG_BASE, STREAM_NAMES
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.catalog import codec, codec_options
from actcodec.codecs.compressed import Packed
from actcodec.codecs.reconstruction_error import reconstruction_error


@dataclass(frozen=True)
class Goal:
    """Goal of a search: either a largest error or a compression ratio.

    Parameters
    ----------
    max_error
        Bound of ``max |y - x|``; the search takes the fewest bytes within it.
    ratio
        Least ratio of the tensor's bytes to those of its stream; the search takes the least error that reaches it.
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
        """Return the option of the command line that sets the goal."""
        return "--ratio" if self.max_error is None else "--max-error"

    @property
    def _bound(self) -> float:
        bound = self.ratio if self.max_error is None else self.max_error
        assert bound is not None, "a goal has a bound"
        return bound

    def settings(self, name: str, options: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
        """Return the option to find and its values, those that reach the goal most easily first.

        Raises UserError for a codec without such an option, and if ``options`` set it.
        """
        if (found := ladder(name)) is None:
            others = ", ".join(one for one in STREAM_NAMES if ladder(one) is not None)
            raise UserError(f"codec {name!r} has no option that {self.option} could find: use {others}")
        option, values = found
        if option in options:
            raise UserError(f"{self.option} finds --{option}: leave one of the two out")
        return option, values if self.max_error is not None else values[::-1]

    def measured(self, x: Tensor, packed: Packed, backend: Backend) -> tuple[float, bool]:
        """Return the number that the goal bounds, and whether the compressed tensor reaches the goal."""
        if self.max_error is None:
            ratio = x.numel() * x.element_size() / packed.nbytes
            return ratio, ratio >= self._bound
        error = reconstruction_error(x, packed.decompress(backend), backend.release).largest
        return error, error <= self._bound


@dataclass(frozen=True)
class Found:
    """Tensor compressed with the option that a search found."""

    packed: Packed
    options: dict[str, Any]  #: the option by its name


def ladder(name: str) -> tuple[str, Sequence[Any]] | None:
    """Return the option that trades error for bytes and its values, least error first; None if the codec has none."""
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
    """Compress a tensor with the option that reaches a goal.

    Parameters
    ----------
    x
        A tensor that the codec takes.
    name, options
        The codec and its other options.
    backend
        Computes the codec.
    goal
        Bound on the measured result.
    original
        Tensor to compare with, if ``x`` was cast from another number format.

    Settings are tried by bisection, which assumes that coarser ones have fewer bytes and greater errors. Raises UserError with
    the result of the first setting if that one misses the goal.
    """
    option, values = goal.settings(name, options)
    best: Found | None = None
    low, high = 0, len(values)  # settings below low reach the goal, those from high on miss it
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
