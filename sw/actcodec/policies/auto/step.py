"""One training step under policy ``auto``: each tensor gets its codec, and in some steps every candidate is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.policies.auto.measurement import Measurement
from actcodec.policies.policy import CodecSpec, SavedTensor
from actcodec.policies.recurring import differentiable_result
from actcodec.saved.operations import Operation, is_parameter
from actcodec.saved.statistics import Statistics


@dataclass(frozen=True)
class CandidateEstimate:
    """The estimated effect of one candidate on the tensors of one rule, from the last step that was measured."""

    codec: CodecSpec
    nbytes: float  #: bytes, including signs kept beside the values
    relative_error: float  #: ||x - x'|| / ||x||
    gradient_error: float  #: estimated ||g - g'|| / ||g||


@dataclass
class AutoItem:
    """Tensors that share one codec."""

    chosen: int | None = None  #: index of the chosen candidate
    measured: list[Measurement] = field(default_factory=list)
    estimates: list[CandidateEstimate | None] = field(default_factory=list)  #: by candidate; None where one does not fit

    def estimate(self, candidates: Sequence[tuple[CodecSpec, Codec]], squared_gradient: float, factor: float) -> None:
        """Turn measurements into estimates. ``squared_gradient`` is ``||g||**2``; ``factor`` multiplies gradient errors."""
        norm = math.fsum(one.squared_norm for one in self.measured)
        self.estimates = []
        for place, (spec, codec) in enumerate(candidates):
            nbytes = sum(one.nbytes[place] + (0 if codec.keeps_zeros else one.beside) for one in self.measured)
            error = sum(float(one.errors[place].sum()) for one in self.measured)
            of_gradient = sum(float(one.gradient_errors[place]) for one in self.measured)
            relative = math.sqrt(error / norm) if norm else 0.0
            found = CandidateEstimate(spec, nbytes, relative, factor * math.sqrt(of_gradient / squared_gradient))
            self.estimates.append(found if math.isfinite(nbytes) else None)
        self.measured = []

    def state_dict(self) -> dict[str, Any]:
        """Return choice and estimates as plain values."""
        numbers = [one and (one.nbytes, one.relative_error, one.gradient_error) for one in self.estimates]
        return {"chosen": self.chosen, "estimates": numbers}

    @classmethod
    def of_state(cls, state: Mapping[str, Any], candidates: Sequence[CodecSpec]) -> AutoItem:
        """Return an item with saved choice and estimates."""
        pairs = zip(candidates, state["estimates"], strict=True) if state["estimates"] else ()
        return cls(state["chosen"], estimates=[numbers and CandidateEstimate(spec, *numbers) for spec, numbers in pairs])


class Undecided(Codec):
    """Placeholder in the rules for tensors that the policy decides one by one; it never codes anything."""

    name = "auto"

    def compress(self, x: Tensor) -> Packed:
        """Raise AssertionError."""
        raise AssertionError("policy auto puts another codec in the place of this one")

    def decompress(self, compressed: Packed) -> Tensor:
        """Raise AssertionError."""
        raise AssertionError("policy auto puts another codec in the place of this one")


class ItemCodec(Codec):
    """The codec of one saved tensor in one step."""

    def __init__(self, item: AutoItem, spec: CodecSpec, codec: Codec, candidates: Sequence[Codec]) -> None:
        self.name, self.item = spec.name, item
        # A measuring step keeps the signs beside the values so that their bytes are counted.
        self.keeps_zeros = codec.keeps_zeros and not candidates
        self.centred, self.lossless = codec.centred, codec.lossless
        self.measurement: Measurement | None = None
        self.nbytes = 0
        self._codec, self._candidates = codec, candidates

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        if self._candidates:
            self.measurement = Measurement.of(x, self._candidates)
        packed = self._codec.compress(x)
        self.nbytes = packed.nbytes
        return packed

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return self._codec.decompress(compressed)


class AutoStep:
    """The observer of one context.

    Parameters
    ----------
    undecided
        Placeholder codec that other codecs replace.
    codec_of_item
        Makes the codec of the next such tensor.
    measures
        True in a step that measures the candidates.
    """

    def __init__(self, undecided: Codec, codec_of_item: Callable[[SavedTensor], ItemCodec], measures: bool) -> None:
        self.measures = measures
        self.squared_gradient = 0.0  #: squared norm over parameters whose operations read compressed tensors
        self.bytes_original = self.bytes_elsewhere = 0  #: sum over all activations; sum over tensors that others decide
        self._undecided, self._codec_of_item = undecided, codec_of_item
        self._coded: list[ItemCodec | None] = []  # by the place of the choice; None for signs
        self._hooks: dict[int, Any] = {}  # by parameter

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`. Signs are left as they are."""
        self._coded.append(self._codec_of_item(tensor) if codec is self._undecided else None)
        return self._coded[-1] or codec

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`. In a measuring step the gradients give the weight of errors."""
        output = differentiable_result(result)
        saved = [codec.measurement for codec in operation.saved if isinstance(codec, ItemCodec)]
        measurements = [measurement for measurement in saved if measurement is not None]
        if output is None or not measurements:
            return
        for measurement in measurements:
            measurement.listen(operation, output)
        for parameter in operation.tensors():
            if is_parameter(parameter) and parameter.requires_grad and id(parameter) not in self._hooks:
                self._hooks[id(parameter)] = parameter.register_hook(self._add_gradient)

    def closed(self, statistics: Statistics) -> None:
        """Collect the measurements of tensors that were kept with the codec of the policy's choice."""
        self.bytes_original, self.bytes_elsewhere = statistics.bytes_original, statistics.bytes_compressed
        for record in statistics.records:
            codec = None if record.choice is None else self._coded[record.choice]
            if codec is not None and codec.measurement is not None:
                codec.measurement.beside = record.bytes_compressed - codec.nbytes
                codec.item.measured.append(codec.measurement)
                self.bytes_elsewhere -= record.bytes_compressed

    def end(self) -> None:
        """Remove the hooks from the parameters."""
        for hook in self._hooks.values():
            hook.remove()

    def _add_gradient(self, gradient: Tensor) -> None:
        self.squared_gradient += float(gradient.detach().to(torch.float64).square().sum())
