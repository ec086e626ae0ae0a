"""Codec under test: what makes it, and facts that are found from what it makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from cdu_spec.dqt import divisors
from cdu_tools.errors import UserError

from actcodec.backends.named import NATIVE, TORCH
from actcodec.codecs import Codec
from actcodec.codecs.jpeg.block_codec import BlockCodec

#: All numbers of bits that a codec could have.
_CONCEIVABLE = range(1, 33)
#: Options that choose the number of bits, and the form of that number in each.
_WIDTH_OPTIONS: dict[str, Callable[[int], object]] = {"bits": int, "dpr": "fp{}".format}


class Subject:
    """A codec with all its widths and backends.

    Parameters
    ----------
    kind
        Class or function that returns the codec, with options as keyword arguments that all have defaults.
    options
        Names and defaults of the options; by default the parameters of ``kind``.
    backends
        Backends to test, if the codec has the option ``backend``.
    """

    def __init__(
        self,
        kind: Callable[..., Codec],
        options: Mapping[str, Any] | None = None,
        backends: Sequence[str] = (TORCH, NATIVE),
    ) -> None:
        found = {name: one.default for name, one in inspect.signature(kind).parameters.items()}
        self._kind, self.options = kind, found if options is None else options
        self.backends: Sequence[str | None] = backends if "backend" in self.options else (None,)
        self.name = self.make().name
        self._follows: dict[int | None, bool] = {}

    def __repr__(self) -> str:
        return self.name

    def make(self, bits: int | None = None, backend: str | None = None, **options: Any) -> Codec:
        """Return the codec, of some width and computed by a backend where they are given."""
        if bits is not None:
            options |= self._width(bits)
        if "backend" in self.options:
            options["backend"] = backend or self.backends[0]
        return self._kind(**options)

    def change_width(self, codec: Codec, bits: int) -> None:
        """Give a codec object another width, as its user could."""
        for option, value in self._width(bits).items():
            setattr(codec, option, value)

    def width(self, bits: int | None) -> object:
        """Return a width as the codec's option has it: a float of 10 bits and a code of 10 bits have nothing in common."""
        return None if bits is None else next(iter(self._width(bits).values()))

    def _width(self, bits: int) -> dict[str, object]:
        (option,) = (option for option in _WIDTH_OPTIONS if option in self.options)
        return {option: _WIDTH_OPTIONS[option](bits)}

    def _takes(self, bits: int) -> bool:
        try:
            self.make(bits)
        except UserError:
            return False
        return True

    @cached_property
    def widths(self) -> tuple[int | None, ...]:
        """Return the numbers of bits per value that the codec takes; (None,) for a codec without a choice."""
        if not any(option in self.options for option in _WIDTH_OPTIONS):
            return (None,)
        return tuple(bits for bits in _CONCEIVABLE if self._takes(bits))

    @property
    def keeps_values(self) -> bool:
        """Return whether the codec keeps more than signs."""
        return not self.make().signs_only

    @property
    def is_stochastic(self) -> bool:
        """Return whether the codec rounds at random by default."""
        return self.options.get("rounding") == "stochastic"

    @cached_property
    def is_lossless(self) -> bool:
        """Return whether the codec restores arbitrary numbers of any magnitude to the last bit."""
        x = torch.randn(2, 4, 16, 16) * 2.0 ** torch.randint(-60, 60, (2, 4, 16, 16))
        codec = self.make()
        return torch.equal(codec.decompress(codec.compress(x)), x)

    def follows_magnitude(self, bits: int | None) -> bool:
        """Return whether the codec's range adapts to the values; a fixed one turns small values to zero."""
        if bits not in self._follows:
            codec = self.make(bits)
            self._follows[bits] = bool(codec.decompress(codec.compress(torch.randn(2, 4, 16, 16) * 2.0**-30)).any())
        return self._follows[bits]

    @property
    def greatest_divisor(self) -> int:
        """Return the greatest divisor of the coefficients of a codec of 8x8 blocks; of optL for others, which ignore it."""
        codec = self.make()
        return max(divisors(codec.table if isinstance(codec, BlockCodec) else "optL"))

    @property
    def transforms_blocks(self) -> bool:
        """Return whether the codec transforms 8x8 blocks, which it pads with zeros at the edges of a map."""
        return isinstance(self.make(), BlockCodec)
