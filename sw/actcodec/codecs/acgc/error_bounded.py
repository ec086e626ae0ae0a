"""Interface of codecs that keep a given error, on which AC-GC builds.

The error is a root mean square (RMS), because gradients depend on it: with an error D in the saved activation, the error of a
weight's gradient is a product of D and the gradient at the layer's output, whose norm is at most the product of their norms
(Cauchy and Schwarz), whatever D's distribution. The table relates a quantiser's step s to an RMS error of at most e:

=======================  ==============  ===============================  =======================  ===========
rounding                 greatest error  RMS, values spread over a step   RMS, whatever values     step that is
                                         evenly (uniform errors)          there are                always safe
=======================  ==============  ===============================  =======================  ===========
nearest                  s / 2           s / sqrt(12)                     s / 2                    2 e
stochastic (unbiased)    s               s / sqrt(6)                      s / 2                    2 e
=======================  ==============  ===============================  =======================  ===========

A value at the fraction p of a step has the mean square error ``s**2 * min(p, 1 - p)**2`` or, rounded stochastically,
``s**2 * p * (1 - p)``; the columns are the mean over p and the maximum, at p = 1/2. An error uniform over -a .. a has the RMS
``a / sqrt(3)``. So AC-GC's step of ``2 * dx`` (its bits: ``-log2(dx) - log2(scale)``) keeps an RMS of dx with both roundings.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed

#: Factor from an error to a step that keeps it with nearest and with stochastic rounding, as the module describes.
SAFE_STEP = 2.0
#: Error of :meth:`ErrorBoundedCodec.compress` in units of a channel's largest magnitude: 8 bits with sign keep it.
DEFAULT_RELATIVE_ERROR = 1 / 252


class ErrorBoundedCodec(Codec):
    """Codec that keeps a given error."""

    #: True if the errors of values have mean zero and are independent of one another (each value is rounded stochastically), so
    #: that they average out in sums over many values.
    independent_errors: bool = False
    centred = True

    @abstractmethod
    def compress_within(self, x: Tensor, error: Tensor) -> Packed:
        """Return the compressed form of ``x``, which is not changed.

        Parameters
        ----------
        x
            As for :meth:`Codec.compress`.
        error
            Greatest RMS error of a value: positive, float32 (1,) or, for x of rank 2 or more, (x.shape[1],), on any device. The
            mean of the squared errors over all values of x, or over the values of each channel (axis 1), is at most
            ``error**2``; with stochastic rounding, its expectation is. A codec that assumes uniform errors must check the
            assumption. Rounding of the result to x's dtype adds to the error. A codec that cannot keep the error makes it as
            small as it can.

        Raises UserError as :meth:`Codec.compress` does, and for errors that :func:`checked_error` refuses.
        """

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec` with an error of 1/252 of the largest magnitude in each channel, the error of 8 bits."""
        check_input(x)
        check_finite(x)
        return self.compress_within(x, default_error(x))


def default_error(x: Tensor) -> Tensor:
    """Return the error that :meth:`ErrorBoundedCodec.compress` allows for finite x, float32 (C,), or (1,) for rank 1."""
    others = [axis for axis in range(x.ndim) if axis != 1]
    largest = x.detach().abs().amax(others if x.ndim > 1 else 0).to(torch.float32).view(-1)
    return (largest * DEFAULT_RELATIVE_ERROR).clamp_min(torch.finfo(torch.float32).tiny)


def checked_error(x: Tensor, error: Tensor) -> Tensor:
    """Return ``error`` on the device of x; raise UserError unless it is float32, positive, finite, and (1,) or (channels,)."""
    counts = (1, x.shape[1]) if x.ndim > 1 else (1,)
    if not isinstance(error, Tensor) or error.dtype != torch.float32 or error.ndim != 1 or error.numel() not in counts:
        given = f"{error.dtype} {tuple(error.shape)}" if isinstance(error, Tensor) else repr(error)
        wanted = " or ".join(f"({count},)" for count in dict.fromkeys(counts))
        raise UserError(f"error = {given} does not go with shape {tuple(x.shape)}: use a float32 tensor {wanted}")
    if not bool((error.isfinite() & (error > 0)).all()):
        raise UserError("an error is zero, negative, infinite or NaN: use positive finite numbers")
    return error.detach().to(x.device)


def along_channels(per_channel: Tensor, rank: int) -> Tensor:
    """Reshape (1,) or (C,) so that it broadcasts against a tensor of rank ``rank``, whose axis 1 counts the channels."""
    return per_channel.view(-1, *[1] * (rank - 2)) if rank > 1 else per_channel
