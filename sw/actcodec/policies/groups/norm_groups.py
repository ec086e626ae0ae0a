"""Groups in training: one copy for a batch normalisation, the ReLU after it and the layers that read its result (BLPA).

Autograd keeps the input x of a batch normalisation and the result of the ReLU, which the next layer saves as well. Here only
a', the copy of the result of batch normalisation before ReLU, stays, and all else follows from it:

- ReLU's gradient needs the sign of a: where a' lacks it, ReLU's result gives it;
- the next layer reads relu(a'), or a' where there is no ReLU or one that saves its input (leaky, SiLU, GELU ...);
- batch normalisation reads ``x' = mean + (a' - beta) * sigma / gamma``.

The last line needs a gamma that is not small: see :mod:`actcodec.policies.groups.norm_copy`. Which codec makes the copy follows
from the one that the policy's rules choose for x.

Autograd packs x before the result is there: x waits in the group until :meth:`_Groups.finished` makes the copy. A ReLU finds
the group by the node of the graph that computed its input, so that it does not matter whether it works in place.

What is not part of a group (network input, sums, ReLU after a sum, features, results of pooling) has the form that the rules
choose; ReLU alone keeps one bit. So has the x of a batch normalisation that was saved by an operation before, that is the
result of ReLU (whose signs a' would not keep), or that is normalised by other functions than
``torch.nn.functional.batch_norm``.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from actcodec.backends.backend import Backend
from actcodec.codecs import Codec, Packed
from actcodec.codecs.actnn.float_forms import no_bitstream
from actcodec.codecs.centring import compress_centred, decompress_centred
from actcodec.codecs.codec import SfprCodec
from actcodec.codecs.copies import CopyCodec
from actcodec.codecs.signed_copies import SignedCodec
from actcodec.golden.sfpr import UnfitValuesError
from actcodec.policies.groups.norm_copy import Group, Normalisation
from actcodec.policies.policy import EXACT, Policy, SavedTensor
from actcodec.saved.gradient_needs import SIGNS
from actcodec.saved.operations import Operation, metadata, plain
from actcodec.saved.statistics import TensorRecord, relative_error

_GROUP_MARK = "actcodec.group"
_BATCH_NORM = "batch_norm"
_RELU = "relu"


class _Input:
    """The saved input of a batch normalisation: itself until the result is known, then a group or a form of its own."""

    def __init__(self, x: Tensor, codec: Codec) -> None:
        self.shape, self.dtype = tuple(x.shape), x.dtype
        self.codec = codec
        self.held: Tensor | None = x
        self.kept: Group | Packed | None = None

    @property
    def nbytes(self) -> int:
        """Return the bytes of everything that this tensor needs."""
        if self.held is not None:
            return self.held.numel() * self.held.element_size()
        assert self.kept is not None, "what is not held is kept"
        return self.kept.nbytes

    def to_bytes(self) -> bytes:
        """Raise UserError: a tensor of a group has no byte stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the input, or its reconstruction x'."""
        if self.held is not None:
            return self.held
        if isinstance(self.kept, Group):
            return self.kept.normalised()
        assert self.kept is not None, "what is not held is kept"
        return decompress_centred(self.kept, self.codec)


class _Output:
    """The result of a batch normalisation, or of the ReLU after it."""

    def __init__(self, group: Group, *, rectified: bool) -> None:
        self.group, self._rectified = group, rectified

    @property
    def nbytes(self) -> int:
        """Return 0, because the group counts the bytes."""
        return 0

    def to_bytes(self) -> bytes:
        """Raise UserError: a tensor of a group has no byte stream."""
        raise no_bitstream()

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Compute a', or relu(a')."""
        values = self.group.copy.decompress()
        return values.relu_() if self._rectified else values


class _InputCodec(Codec):
    """The codec of one input of a batch normalisation: ``copies`` codes its group, ``own`` an input without a group."""

    def __init__(self, copies: CopyCodec, own: Codec) -> None:
        self.name = own.name
        self._copies, self._own = copies, own
        self.packed: _Input | None = None
        self.record: TensorRecord | None = None

    def compress(self, x: Tensor) -> _Input:
        """Implement :class:`Codec`."""
        self.packed = _Input(x, self._own)
        return self.packed

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()

    def settle(self, operation: Operation, result: Any) -> None:
        """Make the copy, once, from the result of the operation that saved the input.

        Raise UnfitValuesError for values that a copy cannot hold; the input itself is then kept.
        """
        packed = self.packed
        if packed is None or packed.held is None:
            return
        x = packed.held
        try:
            packed.kept, packed.held = self._copy(x, operation, result), None
        except UnfitValuesError:
            # The clone protects the kept input from in-place changes by the model.
            packed.held, self.packed = x.clone(), None
            if self.record is not None:
                self.record.codec, self.record.choice = EXACT, None
            raise
        if self.record is not None:
            self.record.bytes_compressed = packed.nbytes
            if isinstance(packed.kept, Group):
                packed.kept.count(self.record)
            if self.record.relative_error is not None:
                self.record.relative_error = relative_error(x, packed.decompress(), self.name)

    def _copy(self, x: Tensor, operation: Operation, result: Any) -> Group | Packed:
        norm = Normalisation.of(operation, x, self._copies.arithmetic)
        if norm is None or not isinstance(result, Tensor) or result.shape != x.shape or result.grad_fn is None:
            return compress_centred(x.contiguous(), self._own)
        group = Group(x, result, norm, self._copies)
        # A strong reference would keep the graph alive after the backward pass.
        metadata(result.grad_fn)[_GROUP_MARK] = (weakref.ref(group), result._version)
        return group


class _OutputCodec(Codec):
    """The codec of one tensor that a group already holds. With ``signed`` the copy must keep its signs exactly."""

    def __init__(self, group: Group, *, rectified: bool, signed: bool) -> None:
        self.name = group.codec_name
        self.group, self._rectified, self._signed = group, rectified, signed

    def compress(self, x: Tensor) -> _Output:
        """Implement :class:`Codec`."""
        if self._signed:
            self.group.copy.keep_signs(x)
        return _Output(self.group, rectified=self._rectified)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()


class _Groups:
    """The observer (GroupObserver) of one context."""

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""
        return codec

    def member_codec(self, x: Tensor, tensor: SavedTensor, codec: Codec, operation: Operation) -> Codec:
        """Implement :class:`GroupObserver`."""
        copies = copy_codec(codec)
        if copies is not None and operation.function == _BATCH_NORM and tensor.producer != _RELU:
            given = next(operation.tensors(), None)
            return _InputCodec(copies, codec) if given is not None and given.shape == x.shape else codec
        return _group_of(x, operation) or codec

    def has_signs(self, x: Tensor, operation: Operation) -> bool:
        """Implement :class:`GroupObserver`."""
        return _group_of(x, operation) is not None

    def counted(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""
        if isinstance(codec, _InputCodec):
            codec.record = record
        elif isinstance(codec, _OutputCodec):
            codec.group.count(record)

    def replaced(self, codec: Codec, record: TensorRecord) -> None:
        """Implement :class:`GroupObserver`."""
        if isinstance(codec, _OutputCodec):
            codec.group.forget(record)
        elif isinstance(codec, _InputCodec) and codec.packed is not None and isinstance(codec.packed.kept, Group):
            codec.packed.kept.forget(record)

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`."""
        for codec in operation.saved:
            if isinstance(codec, _InputCodec):
                with torch.no_grad():
                    codec.settle(operation, result)


def copy_codec(codec: Codec) -> CopyCodec | None:
    """Return the codec that copies results of normalisations whose inputs ``codec`` would code; None if there is none."""
    if isinstance(codec, CopyCodec):
        return codec
    return SignedCodec(codec) if isinstance(codec, SfprCodec) else None


def _group_of(x: Tensor, operation: Operation) -> _OutputCodec | None:
    """Return the codec for an unchanged result of a batch normalisation, or of the ReLU after one; None for other tensors."""
    if x.grad_fn is None:
        return None
    group = _marked(x.grad_fn, (x._version,), x)
    if group is not None:
        return _OutputCodec(group, rectified=False, signed=plain(operation.function) in SIGNS)
    source, before = next(operation.tensors(), None), x.grad_fn.next_functions
    if operation.name != _RELU or source is None or len(before) != 1 or before[0][0] is None:
        return None
    # An in-place ReLU has increased the version by one.
    in_place = source.untyped_storage()._cdata == x.untyped_storage()._cdata
    group = _marked(before[0][0], (source._version - in_place, source._version)[: 1 + in_place], x)
    return None if group is None else _OutputCodec(group, rectified=True, signed=True)


def _marked(node: Node, versions: tuple[int, ...], x: Tensor) -> Group | None:
    """Return the living group of a node if its tensor has one of these versions and the shape and dtype of ``x``, else None."""
    mark = metadata(node).get(_GROUP_MARK)
    if not isinstance(mark, tuple):
        return None
    group, version = mark[0](), mark[1]
    if group is None or version not in versions or group.copy.shape != tuple(x.shape) or group.copy.dtype != x.dtype:
        return None
    assert isinstance(group, Group)
    return group


class GroupPolicy(Policy):
    """A policy whose batch normalisations share copies with readers of their results. An object serves any number of models."""

    def observer(self) -> _Groups:
        """Implement :class:`Policy`."""
        return _Groups()
