"""Codecs that are told how large an error may be: what AC-GC needs of a codec, whatever it does inside.

The error is a root mean square (RMS), because that is what a gradient feels: with an error D in the saved activation, the
gradient of a weight is off by a product of D and the gradient at the layer's output, whose norm is at most the product of
their norms (Cauchy and Schwarz), whatever D's distribution. A quantiser of step s and an RMS of at most e go together so:

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

#: A step of that many errors is safe with nearest and with stochastic rounding, see the module.
SAFE_STEP = 2.0
#: Error of :meth:`ErrorBoundedCodec.compress`, in units of the largest magnitude of a channel: 8 bits, sign included, do it.
DEFAULT_RELATIVE_ERROR = 1 / 252


class ErrorBoundedCodec(Codec):
    """A codec that keeps to a given error."""

    #: Whether the errors of values have mean zero and are independent of one another (each value is rounded stochastically),
    #: so that they average out in sums over many values.
    independent_errors: bool = False
    centred = True

    @abstractmethod
    def compress_within(self, x: Tensor, error: Tensor) -> Packed:
        """The compressed form of ``x``; ``x`` is not changed.

        Parameters
        ----------
        x
            As for :meth:`Codec.compress`.
        error
            Positive, float32 (1,) or, for x of rank 2 or more, (x.shape[1],), on any device: the greatest RMS error of a
            value. The mean of the squared errors over all values of x, or over the values of each channel (axis 1), is at
            most ``error**2``; its expectation, where rounding is stochastic. A codec that assumes errors to be uniform has to
            look whether they are. Rounding the result to x's dtype comes on top. A codec that cannot be so exact is as
            exact as it can.

        Raises UserError as :meth:`Codec.compress` does, and for errors that :func:`checked_error` refuses.
        """

    def compress(self, x: Tensor) -> Packed:
        """See :class:`Codec`: with an error of 1/252 of the largest magnitude in each channel, that of 8 bits."""
        check_input(x)
        check_finite(x)
        return self.compress_within(x, default_error(x))


def default_error(x: Tensor) -> Tensor:
    """What :meth:`ErrorBoundedCodec.compress` allows for finite x, float32 (C,), or (1,) for rank 1."""
    others = [axis for axis in range(x.ndim) if axis != 1]
    largest = x.detach().abs().amax(others if x.ndim > 1 else 0).to(torch.float32).view(-1)
    return (largest * DEFAULT_RELATIVE_ERROR).clamp_min(torch.finfo(torch.float32).tiny)


def checked_error(x: Tensor, error: Tensor) -> Tensor:
    """``error`` on the device of x; UserError unless it is float32, positive, finite, and has one value or one per channel."""
    counts = (1, x.shape[1]) if x.ndim > 1 else (1,)
    if not isinstance(error, Tensor) or error.dtype != torch.float32 or error.ndim != 1 or error.numel() not in counts:
        given = f"{error.dtype} {tuple(error.shape)}" if isinstance(error, Tensor) else repr(error)
        wanted = " or ".join(f"({count},)" for count in dict.fromkeys(counts))
        raise UserError(f"error = {given} does not go with shape {tuple(x.shape)}: use a float32 tensor {wanted}")
    if not bool((error.isfinite() & (error > 0)).all()):
        raise UserError("an error is zero, negative, infinite or NaN: use positive finite numbers")
    return error.detach().to(x.device)


def along_channels(per_channel: Tensor, rank: int) -> Tensor:
    """(1,) or (C,) in a shape that broadcasts against a tensor of that rank, whose axis 1 counts the channels."""
    return per_channel.view(-1, *[1] * (rank - 2)) if rank > 1 else per_channel
