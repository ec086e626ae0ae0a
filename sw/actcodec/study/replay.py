"""Record the compression of one step, and replay it with one tensor compressed and all others exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs import Codec, Packed, RawCopy
from actcodec.policies.policy import GroupObserver, Observer, Policy, SavedTensor
from actcodec.saved.operations import Operation
from actcodec.saved.statistics import Statistics, TensorRecord


class StepRecorder(Policy):
    """Pass on the decisions of a policy, and record the results of its codecs."""

    def __init__(self, chosen: Policy) -> None:
        super().__init__((), keep_signs=chosen.keep_signs, companions=chosen.companions)
        self.chosen, self.every_operation = chosen, chosen.every_operation
        self.facts: list[SavedTensor] = []
        self.codecs: list[Codec] = []
        self.packed: dict[int, Packed] = {}  #: by the index of the choice; without those that a codec refused
        self.signs: list[bool] = []  #: answers whether a group has the signs of a tensor, in the order of the questions
        self.records: list[TensorRecord] = []

    def choose(self, tensor: SavedTensor) -> Codec | None:
        """Implement :class:`Policy`."""
        return self.chosen.choose(tensor)

    def observer(self) -> Observer:
        """Implement :class:`Policy`."""
        return _Recording(self, self.chosen.observer())

    def context_closed(self, statistics: Statistics) -> None:
        """Implement :class:`Policy`."""
        self.records = statistics.records
        self.chosen.context_closed(statistics)


class _Recording:
    """A GroupObserver that passes every call on."""

    def __init__(self, recorder: StepRecorder, own: Observer | None) -> None:
        self._recorder, self._own = recorder, own
        self._groups = own if isinstance(own, GroupObserver) else None

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""
        codec = codec if self._own is None else self._own.codec_of(tensor, codec)
        self._recorder.facts.append(tensor)
        self._recorder.codecs.append(codec)
        return self._remembering(codec)

    def member_codec(self, x: Tensor, tensor: SavedTensor, codec: Codec, operation: Operation) -> Codec:
        """Implement :class:`GroupObserver`. ``codec`` is the result of the last call of :meth:`codec_of`."""
        if self._groups is None:
            return codec
        self._recorder.codecs[-1] = found = self._groups.member_codec(x, tensor, _own(codec), operation)
        return self._remembering(found)

    def has_signs(self, x: Tensor, operation: Operation) -> bool:
        """Implement :class:`GroupObserver`."""
        answer = self._groups is not None and self._groups.has_signs(x, operation)
        self._recorder.signs.append(answer)
        return answer

    def counted(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""
        if self._groups is not None:
            self._groups.counted(_own(codec), record)

    def replaced(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""
        if self._groups is not None:
            self._groups.replaced(_own(codec), record)

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`."""
        if self._own is not None:
            self._own.finished(replace(operation, saved=[_own(codec) for codec in operation.saved]), result)

    def _remembering(self, codec: Codec) -> Codec:
        return _Remembering(codec, len(self._recorder.codecs) - 1, self._recorder.packed)


def _own(codec: Codec) -> Codec:
    return codec.codec if isinstance(codec, _Remembering) else codec


class _Remembering(Codec):
    """A codec whose results are recorded."""

    def __init__(self, codec: Codec, number: int, packed: dict[int, Packed]) -> None:
        self.name, self.keeps_zeros, self.signs_only = codec.name, codec.keeps_zeros, codec.signs_only
        self.centred, self.lossless = codec.centred, codec.lossless
        self.codec, self._number, self._packed = codec, number, packed

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        packed = self._packed[self._number] = self.codec.compress(x)
        return packed

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return self.codec.decompress(compressed)


class Replay(Policy):
    """Replay the decisions of a recorded pass with the reconstruction of one tensor; the others stay exact."""

    def __init__(self, recorder: StepRecorder, wanted: int) -> None:
        super().__init__((), keep_signs=recorder.keep_signs, companions=recorder.companions)
        self._recorder, self._wanted = recorder, wanted
        self._seen: list[SavedTensor] = []
        self._signs = iter(recorder.signs)

    def choose(self, tensor: SavedTensor) -> Codec | None:
        """Implement :class:`Policy`."""
        return self._recorder.chosen.choose(tensor)

    def observer(self) -> Observer:
        """Implement :class:`Policy`."""
        return self

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""
        number = len(self._seen)
        self._seen.append(tensor)
        if tensor != next(iter(self._recorder.facts[number:]), None):
            raise _other_tensors()
        codec = self._recorder.codecs[number]
        return _Given(codec, self._recorder.packed[number] if number == self._wanted else None)

    def member_codec(self, x: Tensor, tensor: SavedTensor, codec: Codec, operation: Operation) -> Codec:
        """Implement :class:`GroupObserver`. ``codec`` is the result of :meth:`codec_of`."""
        return codec

    def has_signs(self, x: Tensor, operation: Operation) -> bool:
        """Implement :class:`GroupObserver`."""
        answer = next(self._signs, None)
        if answer is None:
            raise _other_tensors()
        return answer

    def counted(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""

    def replaced(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`."""

    def context_closed(self, statistics: Statistics) -> None:
        """Implement :class:`Policy`."""
        if self._seen != self._recorder.facts:
            raise _other_tensors()


class _Given(Codec):
    """Keep a tensor exactly, or return the recorded form of another pass."""

    def __init__(self, codec: Codec, packed: Packed | None) -> None:
        self.name, self.keeps_zeros, self.signs_only = codec.name, codec.keeps_zeros, codec.signs_only
        self.centred, self.lossless = codec.centred and packed is not None, codec.lossless
        self._codec, self._packed = codec, packed

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        return RawCopy(x.detach().clone()) if self._packed is None else self._packed

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress() if self._packed is None else self._codec.decompress(compressed)


def _other_tensors() -> UserError:
    return UserError(
        "the step does not save the same tensors in every pass: let it depend on the weights and torch's seed only"
    )
