"""Keep one copy of a batch normalisation's result, a', from which its input x is recomputed.

``x' = mean + (a' - beta) * sigma / gamma`` is accurate where errors are a small part of gamma. Channels in which a' is too
coarse (beta is far from zero in units of gamma, or gamma is zero) keep a copy of their x as well, without the mean where that
is far from zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.codecs.codec import check_finite
from actcodec.codecs.copies import Copy, CopyCodec
from actcodec.golden.channel_statistics import channel_edges, channel_moments
from actcodec.golden.floating.steps import Line
from actcodec.golden.near_zero import FAR
from actcodec.golden.shapes import per_channel
from actcodec.saved.operations import Operation
from actcodec.saved.statistics import TensorRecord


@dataclass(frozen=True)
class Normalisation:
    """The parameters and statistics of a batch normalisation, float64 (channels,)."""

    mean: Tensor
    sigma: Tensor  #: root of variance + eps
    gamma: Tensor
    beta: Tensor

    @classmethod
    def of(cls, operation: Operation, x: Tensor, arithmetic: Backend) -> Normalisation | None:
        """Return those of a finished call with input x (N, channels, ...); None for functions other than torch's own."""
        arguments = operation.kwargs
        if len(operation.args) != len(("input", "running_mean", "running_var")) or "eps" not in arguments:
            return None
        _, mean, variance = operation.args
        if arguments["training"]:
            values = per_channel(x.detach())
            mean, variance = arithmetic.run(channel_moments, values, *arithmetic.run(channel_edges, values))
        weight, bias = arguments["weight"], arguments["bias"]
        mean, variance = mean.to(torch.float64), variance.to(torch.float64)
        gamma = torch.ones_like(mean) if weight is None else weight.detach().to(torch.float64)
        beta = torch.zeros_like(mean) if bias is None else bias.detach().to(torch.float64)
        return cls(mean, (variance + arguments["eps"]).sqrt(), gamma, beta)


class Group:
    """One copy and the tensors that it replaces; statistics share its bytes equally among their entries.

    Parameters
    ----------
    x, result
        Input and result of a batch normalisation, (N, channels, ...) with any strides. NonFiniteError for a result with NaN
        or infinity.
    norm
        Parameters and statistics of the normalisation.
    codec
        Codec that makes the copy.
    """

    def __init__(self, x: Tensor, result: Tensor, norm: Normalisation, codec: CopyCodec) -> None:
        check_finite(result, codec.arithmetic)
        self.codec_name = codec.name
        self.copy = codec.copy(result, norm.beta, norm.gamma)
        # x' = slope * a' + shift, or a copy of its own + shift.
        self.slope = (norm.sigma / norm.gamma).to(torch.float32)
        self.shift = (norm.mean - norm.beta * norm.sigma / norm.gamma).to(torch.float32)
        # With a gamma of zero neither slope nor shift is a number.
        follows = codec.follows(self.copy, result, norm.beta, norm.gamma) & self.slope.isfinite() & self.shift.isfinite()
        self.alone = (~follows).nonzero().flatten()  #: channels with a copy of x
        self.own: Copy | None = None
        if self.alone.numel():
            mean, sigma = norm.mean[self.alone], norm.sigma[self.alone]
            centre = torch.where(mean.abs() > FAR * sigma, mean, 0).to(torch.float32)
            self.shift[self.alone] = centre
            spread = centre.view(-1, *[1] * (x.ndim - 2))
            self.own = codec.copy(x.detach()[:, self.alone] - spread, mean - centre, sigma)
        self._records: list[TensorRecord] = []

    @property
    def nbytes(self) -> int:
        """Return the bytes of the copies and of the coefficients for x."""
        parts = (self.slope, self.shift, self.alone)
        own = 0 if self.own is None else self.own.nbytes
        return self.copy.nbytes + own + sum(part.numel() * part.element_size() for part in parts)

    def normalised(self) -> Tensor:
        """Return x', in shape and dtype of x."""
        x = self.copy.rebuilt(Line(self.slope, self.shift))
        if self.own is not None:
            centre = self.shift[self.alone]
            own = self.own.rebuilt(Line(torch.ones_like(centre), centre))
            x[:, self.alone] = own.to(x.dtype)  # without its mean the copy may have had another dtype
        return x

    def count(self, record: TensorRecord) -> None:
        """Add the entry of one tensor."""
        self._records.append(record)
        self._share()

    def forget(self, record: TensorRecord) -> None:
        """Remove the entry of one tensor; the copy is kept."""
        self._records = [other for other in self._records if other is not record]
        self._share()

    def _share(self) -> None:
        total, count = self.nbytes, len(self._records)
        for place, record in enumerate(self._records):
            record.bytes_compressed = total * (place + 1) // count - total * place // count
