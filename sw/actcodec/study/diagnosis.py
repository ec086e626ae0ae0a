"""Measure the gradient error that each compressed tensor of one training step causes.

The step is repeated with the same weights, data and random numbers: once untouched, which gives the gradient g of all
parameters, once with every tensor compressed, and once for each compressed tensor with that tensor's reconstruction alone, all
others exact. The *gradient error* is ``||g - g'|| / ||g||``. Each tensor is compressed only once: it has the same
reconstruction alone and with the others, stochastic rounding included.

A tensor is recognised from pass to pass by its index among the choices of the policy, and by the properties that a rule can
test (operations, module, shape, dtype), which must be the same in all passes. A tensor that several operations save counts
once, with its last codec.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, nn

from actcodec.codecs import Codec
from actcodec.policies.catalog import policy as policy_of
from actcodec.policies.few_bits import FewBitsWarning
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.saved.statistics import Statistics, TensorRecord, ratio_text, text_table
from actcodec.study.replay import Replay, StepRecorder
from actcodec.study.step_script import checked_loss
from actcodec.training.activation_compression import UncodedWarning, compress_activations
from actcodec.training.selection import check_model, check_shapes


@dataclass(frozen=True)
class TensorDiagnosis:
    """One compressed tensor, or the same tensor of several batches (different codecs are joined by a slash)."""

    module: str  #: module in whose forward it was first saved
    operation: str  #: operation that produced it
    saved_by: tuple[str, ...]  #: operations that saved it
    shape: tuple[int, ...]
    dtype: str
    codec: str
    bytes_original: int
    bytes_compressed: int
    relative_error: float  #: ||x - x'|| / ||x||; for signs, that of the signs
    gradient_error: float  #: ||g - g'|| / ||g|| over all parameters, with only this tensor compressed
    seen: SavedTensor  #: properties that rules tested when its codec was chosen

    @property
    def ratio(self) -> float | None:
        """Bytes before over bytes after compression; None if no bytes are kept, because backward computes the tensor from
        others.
        """
        return self.bytes_original / self.bytes_compressed if self.bytes_compressed else None


@dataclass(frozen=True)
class Diagnosis:
    """The effect of compression on the gradient, tensor by tensor and together."""

    tensors: tuple[TensorDiagnosis, ...]  #: in the order of the forward pass, without tensors kept exactly
    gradient_error: float  #: with every tensor compressed
    gradient_norm: float  #: ||g||
    bytes_original: int  #: sum over all activations, including those kept exactly
    bytes_compressed: int
    everything_original: int  #: bytes of all saved tensors except weights and buffers
    everything_compressed: int

    @property
    def ratio_of_everything(self) -> float:
        """Bytes before over bytes after compression of all these tensors; 1.0 if nothing was saved."""
        return self.everything_original / self.everything_compressed if self.everything_compressed else 1.0

    @property
    def ratio(self) -> float:
        """Bytes before over bytes after compression of activations; 1.0 if nothing was saved."""
        return self.bytes_original / self.bytes_compressed if self.bytes_compressed else 1.0

    @property
    def independent_error(self) -> float:
        """The gradient error of all tensors together if their errors were independent."""
        return math.hypot(*(tensor.gradient_error for tensor in self.tensors))

    @property
    def worst(self) -> list[TensorDiagnosis]:
        """The tensors, the largest gradient error first."""
        return sorted(self.tensors, key=lambda tensor: -tensor.gradient_error)

    @classmethod
    def mean(cls, diagnoses: Sequence[Diagnosis]) -> Diagnosis:
        """Combine diagnoses of several batches of one model: bytes added, relative errors as root mean squares.

        UserError if their tensors differ.
        """
        if not diagnoses:
            raise UserError("no diagnosis was given: give one or more")
        kinds = {tuple((t.module, t.operation, t.shape[1:]) for t in one.tensors) for one in diagnoses}
        if len(kinds) > 1:
            raise UserError("the diagnoses are not of the same tensors: use batches of one model")
        return cls(
            tuple(_mean_tensor(same) for same in zip(*(one.tensors for one in diagnoses), strict=True)),
            _root_mean_square([one.gradient_error for one in diagnoses]),
            _root_mean_square([one.gradient_norm for one in diagnoses]),
            sum(one.bytes_original for one in diagnoses),
            sum(one.bytes_compressed for one in diagnoses),
            sum(one.everything_original for one in diagnoses),
            sum(one.everything_compressed for one in diagnoses),
        )

    def table(self) -> str:
        """Return a text table: the ratio of everything, a row per tensor, and one for all activations together."""
        rows = [("module", "operation", "saved by", "shape", "codec", "ratio", "error", "gradient error")]
        rows += [
            (
                tensor.module or "-",
                tensor.operation,
                "+".join(tensor.saved_by),
                "x".join(map(str, tensor.shape)),
                tensor.codec,
                ratio_text(tensor.ratio),
                f"{tensor.relative_error:.4f}",
                f"{tensor.gradient_error:.4f}",
            )
            for tensor in self.tensors
        ]
        rows.append(("all together", "", "", "", "", f"{self.ratio:.2f}", "", f"{self.gradient_error:.4f}"))
        return f"ratio of everything that autograd keeps: {self.ratio_of_everything:.2f}\n{text_table(rows, left=5)}"

    def to_data(self) -> dict[str, Any]:
        """Return plain values, as for JSON."""
        return {
            "ratio_of_everything": self.ratio_of_everything,
            "ratio": self.ratio,
            "gradient_error": self.gradient_error,
            "independent_error": self.independent_error,
            "gradient_norm": self.gradient_norm,
            "bytes_original": self.bytes_original,
            "bytes_compressed": self.bytes_compressed,
            "tensors": [_row(tensor) for tensor in self.tensors],
        }


def diagnose(
    model: nn.Module,
    step: Callable[[], Tensor],
    codec: str | Policy | Codec = "jpeg-act",
    *,
    on_pass: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> Diagnosis:
    """Repeat one step as the module describes: two passes, and one more for every compressed tensor.

    >>> import torch, actcodec
    >>> model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)), torch.rand(8, 64)
    >>> found = diagnose(model, lambda: model(x).mean(), "actnn", bits=4)
    >>> [tensor.module for tensor in found.tensors], 0 < found.gradient_error < 1
    (['0', '1'], True)

    Parameters, their ``grad``, buffers (running statistics) and torch's random numbers are restored afterwards. An adaptive
    policy takes part in one pass, as in any training step.

    Parameters
    ----------
    model
        The model, in the mode (train, eval) to be measured.
    step
        Computes the loss, a tensor of one value with a gradient function; the same for the same weights, buffers and random
        numbers.
    codec, options
        As in :func:`~actcodec.training.activation_compression.compress_activations`.
    on_pass
        Called after each pass with the number of passes done, and the total.

    Raises UserError if the step has no gradient, runs backward itself, or does not save the same tensors in every pass, and if
    no parameter requires a gradient.
    """
    chosen = policy_of(codec, **options)
    passes = Passes(model, step)
    exact = passes.gradient()
    norm = norm_of(exact)
    if not (math.isfinite(norm) and norm > 0):
        raise UserError(f"the gradient has norm {norm:g}: take a step with a finite gradient that is not zero")
    recorder = StepRecorder(chosen)
    together, statistics = passes.outcome(recorder, measure_error=True)
    assert statistics is not None, "the step was compressed"
    coded = [record for record in recorder.records if record.choice is not None]
    total = 2 + len(coded)
    on_pass(2, total)
    tensors = []
    for number, record in enumerate(coded):
        assert record.choice is not None, "it is among those that have a codec"
        alone = passes.gradient(Replay(recorder, record.choice))
        tensors.append(_diagnosis(record, distance(exact, alone) / norm, recorder.facts[record.choice]))
        on_pass(3 + number, total)
    kept = (sum(record.bytes_original for record in recorder.records), sum(r.bytes_compressed for r in recorder.records))
    return Diagnosis(tuple(tensors), distance(exact, together) / norm, norm, *kept, *statistics.bytes_of_everything)


class Passes:
    """Repeat a step from the same state.

    UserError for what is no model or no step, and for a model without a parameter that requires a gradient.
    """

    def __init__(self, model: nn.Module, step: Callable[[], Tensor]) -> None:
        check_model(model)
        check_shapes(model)
        if not callable(step):
            raise UserError(f"the step is a {type(step).__name__}: give a function without arguments that returns the loss")
        self._model, self._step = model, step
        named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        if not named:
            raise UserError("no parameter of the model requires a gradient: call requires_grad_() on those that are trained")
        self.parameters = list(named.values())
        #: The module of each parameter.
        self.layers = [name.rpartition(".")[0] for name in named]

    def gradient(self, chosen: Policy | None = None, measure_error: bool = False) -> list[Tensor | None]:
        """Return the gradients of the parameters, with a policy or without."""
        return self.outcome(chosen, measure_error)[0]

    def outcome(
        self, chosen: Policy | None = None, measure_error: bool = False
    ) -> tuple[list[Tensor | None], Statistics | None]:
        """Return the gradients and the policy's statistics."""
        with _restored(self._model), _own_gradients(self.parameters):
            if chosen is None:
                statistics, loss = None, self._step()
            else:
                with (
                    warnings.catch_warnings(),
                    compress_activations(self._model, chosen, measure_error=measure_error) as statistics,
                ):
                    for known in (FewBitsWarning, UncodedWarning):  # their subject is measured here
                        warnings.simplefilter("ignore", known)
                    loss = self._step()
            return self._gradients_of(checked_loss(loss)), statistics

    def _gradients_of(self, loss: Tensor) -> list[Tensor | None]:
        try:
            return list(torch.autograd.grad(loss.sum(), self.parameters, allow_unused=True))
        except RuntimeError:
            if all(parameter.grad is None for parameter in self.parameters):
                raise
            raise UserError("the step calls backward() itself: let it return the loss, and leave backward() out") from None


@contextmanager
def _own_gradients(parameters: Sequence[Tensor]) -> Iterator[None]:
    """Leave parameters without ``grad`` while entered, and give them their own back on exit."""
    before = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """Restore buffers and the random numbers of the CPU and of all CUDA devices on exit."""
    before = [
        (module, name, buffer, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        with torch.random.fork_rng():
            yield
    finally:
        with torch.no_grad():
            for module, name, buffer, values in before:
                module._buffers[name] = buffer.copy_(values)


def _diagnosis(record: TensorRecord, gradient_error: float, seen: SavedTensor) -> TensorDiagnosis:
    assert record.relative_error is not None, "errors were measured"
    return TensorDiagnosis(
        record.name,
        record.op,
        record.saved_by,
        record.shape,
        record.dtype,
        record.codec,
        record.bytes_original,
        record.bytes_compressed,
        record.relative_error,
        gradient_error,
        seen,
    )


def _row(tensor: TensorDiagnosis) -> dict[str, Any]:
    """Return plain values."""
    row = asdict(tensor) | {"ratio": tensor.ratio, "shape": list(tensor.shape)}
    del row["seen"]
    return row | {"saved_by": list(tensor.saved_by), "consumer": tensor.seen.consumer, "consumer_module": tensor.seen.module}


def _mean_tensor(same: Sequence[TensorDiagnosis]) -> TensorDiagnosis:
    return replace(
        same[0],
        codec="/".join(dict.fromkeys(one.codec for one in same)),
        bytes_original=sum(one.bytes_original for one in same),
        bytes_compressed=sum(one.bytes_compressed for one in same),
        relative_error=_root_mean_square([one.relative_error for one in same]),
        gradient_error=_root_mean_square([one.gradient_error for one in same]),
    )


def _root_mean_square(values: Sequence[float]) -> float:
    return math.hypot(*values) / math.sqrt(len(values))


def norm_of(gradients: Sequence[Tensor | None]) -> float:
    """Return the norm of the gradients of all parameters together; None counts as zero."""
    return math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients if gradient is not None))


def distance(exact: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> float:
    """Return the norm of the difference of two gradients of the same parameters."""
    pairs = ((one, two) for one, two in zip(exact, other, strict=True) if one is not None and two is not None)
    return math.sqrt(sum(float((one.double() - two.double()).square().sum()) for one, two in pairs))
