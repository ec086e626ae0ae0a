"""cuSZ's error-bounded codec, with which AC-GC builds AutoCuSZ: Lorenzo prediction, quantiser, entropy coder.

As in cuSZ (Tian et al. 2020), values are quantised first and predicted afterwards ("dual quantisation"), so that no step waits
for a reconstructed value. Unlike there, a tensor is one piece without blocks; the entropy coder is
:mod:`actcodec.golden.integer_coder`; values with too many steps are stored unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import float_info

import torch
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_real, is_whole
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import backend as backend_of
from actcodec.codecs.acgc.cusz_form import CuszForm
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec, checked_error
from actcodec.codecs.acgc.error_steps import steps_of_bound, steps_of_rms
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.golden.channel_statistics import channel_edges
from actcodec.golden.floating.predicted import multiples
from actcodec.golden.lorenzo import MAX_DIMENSIONS

#: Units of a bound: those of the values, or the range of a tensor's values.
ABSOLUTE, RELATIVE = "abs", "rel"


@dataclass
class CuszCodec(ErrorBoundedCodec):
    """Codec ``cusz``: Lorenzo prediction, error-bounded quantiser and entropy coder (cuSZ; AC-GC: AutoCuSZ).

    Takes any shape. No value has an error above the bound, zeros stay zeros, and nothing is random.

    Parameters
    ----------
    bound
        Greatest error of a value, positive.
    mode
        ``rel``: in units of the range of the tensor's values, greatest minus least (of their magnitude where all are equal);
        ``abs``: in units of the values.
    dimensions
        Number of axes that predict: 0 (none), 1, 2 (the maps) or 3; they are the last ones of the tensor, never its first.
        None: the number that makes the fewest bits for the first samples of each tensor.
    backend
        ``torch``, or a backend that computes the same in less time, such as ``native``.
    """

    bound: float = 2.0**-8
    mode: str = RELATIVE
    dimensions: int | None = None
    backend: str | Backend = "torch"

    name = "cusz"

    def __post_init__(self) -> None:
        if not is_real(self.bound, 0, float_info.max) or self.bound == 0:
            raise UserError(f"bound = {self.bound!r} is not allowed: use a positive finite number")
        if self.mode not in (ABSOLUTE, RELATIVE):
            raise UserError(f"mode = {self.mode!r} is not allowed: use {ABSOLUTE} or {RELATIVE}")
        if self.dimensions is not None and not is_whole(self.dimensions, 0, MAX_DIMENSIONS):
            raise UserError(f"dimensions = {self.dimensions!r} is not allowed: use 0 to {MAX_DIMENSIONS}, or None")
        self._backend = backend_of(self.backend)

    def compress(self, x: Tensor) -> CuszForm:
        """Implement :class:`~actcodec.codecs.codec.Codec` with the option ``bound``."""
        x = self._checked(x)
        bound = torch.tensor([self.bound], dtype=torch.float64, device=x.device)
        if self.mode == RELATIVE:
            bound *= _extent(*self._backend.run(channel_edges, x.view(1, 1, -1)))
        return self._packed(x, steps_of_bound(x, bound, self._backend))

    def compress_within(self, x: Tensor, error: Tensor) -> CuszForm:
        """Implement :class:`ErrorBoundedCodec`: the steps follow from ``error``, and the option ``bound`` is ignored."""
        x = self._checked(x)
        return self._packed(x, steps_of_rms(x, checked_error(x, error), self._backend))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return compressed.decompress(self._backend)

    def _checked(self, x: Tensor) -> Tensor:
        """Return the values, contiguous and detached; raise UserError for tensors that cannot be compressed."""
        check_input(x)
        check_finite(x, self._backend)
        return x.detach().contiguous()

    def _packed(self, x: Tensor, steps: Tensor) -> CuszForm:
        found = self._backend.run(multiples, x, steps, self.dimensions)
        outliers = x.view(-1)[found.places]
        return CuszForm(tuple(x.shape), x.dtype, found.dimensions, steps, found.coded, found.places, outliers)


def _extent(least: Tensor, greatest: Tensor) -> Tensor:
    """Return the range of values, their magnitude if all are equal, or 1 if all are zero, float64."""
    extent = torch.where(greatest > least, greatest - least, greatest.abs())
    return torch.where(extent > 0, extent, 1.0)
