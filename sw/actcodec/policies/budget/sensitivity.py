"""Estimate the gradient error that a compressed tensor causes: ActNN's sensitivity, by sample and layer (section 4.2).

Stochastic rounding to b bits gives the values of sample n a variance of ``V_n / B**2``, ``B = 2**b - 1``, where ``V_n`` is
:attr:`~actcodec.codecs.actnn.sample_groups.SampleForm.unit_variance`, in the paper's terms ``(G / 6) * ||R_n||**2``. A layer's
weight gradient is a sum of products of saved values and values of the gradient g at the layer's output, so that its variance
is, with independent rounding, the sum over those products of ``g**2 * variance of the value``. Where the variances within a
sample are alike, that is

    w_n / B**2,   w_n = share * ||g_n||**2 * V_n,   share = products / (D * O)

with D values and O outputs per sample. ``products / O`` is the number of values that an output reads:

- linear layer, a row per sample: every output reads all D values, ``share = 1``: the paper's
  ``w_n = (G / 6) * ||g_n||**2 * ||R_n||**2``, exact whatever the variances. With T rows per sample (tokens) an output reads
  ``D / T``. Both operands of a matrix product follow the same rule.
- convolution: an output reads ``C / groups * R * S`` values. A value takes part in at most ``R * S`` outputs per channel
  instead of all of them, which the paper's formula would assume.
- transposed convolution: a value takes part in ``C_out / groups * R * S`` outputs, ``share`` is that number divided by O.
- normalisation: the gradient of gamma is the sum of ``g * (x - mean) / sigma`` with exact mean and sigma, an output reads one
  value: ``share = 1 / (D * sigma**2)``. Ranges go with the deviation of their channel, so sigma**2 is its mean over channels.
  What the error does to the gradient at the input is smaller by the number of values that share a mean, and is left out.
- anything else has no parameters; the error stays in the gradient that is passed on, value by value, with a factor that is the
  second derivative of the function: taken as 1, ``share = 1 / D``. Functions that torch runs as one (attention) count so too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.saved.operations import Operation

#: Kinds of parameters, see :func:`parameter_kind`; a tensor that serves several counts as the first of them.
PARAMETER_KINDS = ("weights", "gammas", "none")
# Functions of two factors whose first tensor is not the left factor.
_LEFT_IS_SECOND = frozenset({"addmm", "addmv", "baddbmm", "addbmm", "__rmatmul__"})


def parameter_kind(operation: Operation) -> str:
    """Return the kind of parameters whose gradient is computed from a saved tensor: ``weights``, ``gammas`` or ``none``."""
    return {"conv": "weights", "linear": "weights", "norm": "gammas"}.get(operation.name, "none")


def share(operation: Operation, values: int, outputs: int) -> float | Tensor:
    """Return the part of ``||g_n||**2 * V_n`` that reaches the gradient, see the module.

    Parameters
    ----------
    operation
        Operation that reads the tensor.
    values, outputs
        Values per sample of the tensor (D) and of the result (O).
    """
    tensors = list(operation.tensors())
    if operation.name == "conv" and len(tensors) > 1:
        reach = tensors[1][0].numel()
        return reach / (outputs if "transpose" in operation.function else values)
    if operation.name == "linear" and len(tensors) > 1:
        left = tensors[operation.function in _LEFT_IS_SECOND]
        return left.shape[-1] / values
    if operation.name == "norm" and tensors:
        x = tensors[0].detach().to(torch.float64)
        over = [0, *range(2, x.ndim)] if "batch" in operation.function else list(range(1, x.ndim))
        return 1 / (values * x.var(over, correction=0).mean()).clamp_min(torch.finfo(torch.float32).tiny)
    return 1 / values


def squared_norms(gradient: Tensor, samples: int) -> Tensor:
    """Return ``||g_n||**2``, float64 (samples,).

    A result whose first axis does not count the samples (they were transposed or joined) has its norm split evenly.
    """
    rows = gradient.detach().to(torch.float64)
    if rows.ndim and len(rows) == samples:
        return rows.reshape(samples, -1).square().sum(1)
    return (rows.square().sum() / samples).expand(samples)


class GradientHistory:
    """Keep ``||g_n||**2`` of one layer by sample: the last one seen, or a moving average.

    A sample that has not been seen, or has no number, gets the average of the layer over the samples of a batch, itself the
    last one or a moving average. A batch with an infinite gradient (loss scaling), or with a square too large for float32, is
    ignored.

    Parameters
    ----------
    average
        Weight of earlier values, from 0 (only the last one counts) to below 1.
    """

    def __init__(self, average: float) -> None:
        self._average = average
        self._mean: Tensor | None = None
        self._by_sample: Tensor | None = None  # NaN where not seen

    @property
    def known(self) -> bool:
        """Return whether any gradient has been seen."""
        return self._mean is not None

    def update(self, norms: Tensor, samples: Tensor | None) -> None:
        """Update with a batch, float64 (N,); ``samples``, int64 (N,), are data-set indices."""
        if not bool(norms.to(torch.float32).isfinite().all()):
            return
        mean = norms.mean()
        self._mean = mean if self._mean is None else torch.lerp(mean, self._mean.to(mean.device), self._average)
        if samples is None or samples.shape != norms.shape:
            return
        samples = samples.to(norms.device)
        table = self._table(int(samples.max()) + 1, norms)
        before = table[samples].to(torch.float64)
        table[samples] = torch.where(before.isnan(), norms, torch.lerp(norms, before, self._average)).to(torch.float32)

    def of(self, samples: Tensor | None, count: int) -> Tensor:
        """Return the best estimate for ``count`` samples, float64 (count,)."""
        assert self._mean is not None, "no gradient is known yet"
        mean = self._mean.expand(count)
        if samples is None or self._by_sample is None or samples.numel() != count:
            return mean
        samples, table = samples.to(mean.device), self._by_sample.to(mean.device)
        within = samples < len(table)
        found = table[samples.where(within, 0)].to(torch.float64)
        return torch.where(within & ~found.isnan(), found, mean)

    def _table(self, least: int, like: Tensor) -> Tensor:
        """Return the table, enlarged to hold at least ``least`` samples."""
        now = self._by_sample
        if now is None or len(now) < least:
            # Twice the room, so that growing costs no more than filling.
            table = torch.full((max(least, 2 * (0 if now is None else len(now))),), torch.nan, device=like.device)
            if now is not None:
                table[: len(now)] = now
            now = table
        self._by_sample = now.to(like.device)
        return self._by_sample

    def state_dict(self) -> dict[str, Any]:
        """Return all knowledge as plain values and tensors."""
        return {"mean": self._mean, "by_sample": None if self._by_sample is None else self._by_sample.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, whose tensors may be on another device than the next gradient."""
        by_sample = state["by_sample"]
        self._mean, self._by_sample = state["mean"], None if by_sample is None else by_sample.clone()


def check_samples(samples: Tensor | None) -> Tensor | None:
    """Return data-set indices as int64 (N,), or None; UserError for anything else."""
    if samples is None:
        return None
    if samples.is_floating_point() or samples.dtype == torch.bool or samples.ndim != 1 or bool((samples < 0).any()):
        raise UserError("the numbers of samples are not a vector of integers from 0 up: give their places in the data set")
    return samples.to(torch.int64)
