"""Measure the error of candidates on a saved tensor, and estimate the resulting gradient error, in an ordinary step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs import Codec
from actcodec.codecs.codec import check_finite
from actcodec.golden.floating.groups import sample_count, sample_size
from actcodec.policies.budget.sensitivity import share, squared_norms
from actcodec.policies.recurring import on_gradient
from actcodec.saved.operations import Operation


@dataclass
class Measurement:
    """The results of compressing one saved tensor with every candidate."""

    nbytes: list[float]  #: by candidate; infinite for a candidate that does not take the tensor
    errors: Tensor  #: ``||e_n||**2``, float64 (candidates, samples)
    squared_norm: float  #: ``||x||**2``
    values: int  #: per sample
    gradient_errors: Tensor  #: estimated squared error of the gradient, float64 (candidates,); grows with each gradient seen
    beside: int = 0  #: bytes of signs kept beside the values

    @classmethod
    def of(cls, x: Tensor, candidates: Sequence[Codec]) -> Measurement:
        """Compress ``x`` with every candidate.

        NonFiniteError for NaN and infinity; if no candidate takes ``x``, the UserError of the first one.
        """
        check_finite(x)
        nbytes, errors, refused = [], [], []
        samples = sample_count(x.shape)
        exact = x.to(torch.float64).reshape(samples, -1)
        for candidate in candidates:
            try:
                packed = candidate.compress(x) if candidate.fits(x.shape) else None
            except UserError as error:
                packed = None
                refused.append(error)
            if packed is None:
                nbytes.append(math.inf)
                errors.append(exact.new_zeros(samples))
                continue
            nbytes.append(packed.nbytes)
            errors.append((exact - candidate.decompress(packed).to(torch.float64).reshape(samples, -1)).square().sum(1))
        if all(map(math.isinf, nbytes)):
            none = UserError(f"no candidate takes a tensor of shape {tuple(x.shape)}: add sfpr to them")
            raise next(iter(refused), none)
        norm = float(exact.square().sum())
        return cls(nbytes, torch.stack(errors), norm, sample_size(x.shape), exact.new_zeros(len(nbytes)))

    def listen(self, operation: Operation, result: Tensor) -> None:
        """Weight the errors by the gradient at the result of an operation that reads the tensor, once it is known."""
        samples = self.errors.shape[1]
        part = share(operation, self.values, max(result.numel() // samples, 1))

        def weigh(gradient: Tensor) -> None:
            self.gradient_errors += part * (self.errors @ squared_norms(gradient, samples))

        on_gradient(result, weigh)
