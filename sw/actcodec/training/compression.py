"""Apply a policy in one context: choose a codec for each tensor, compress it, and inform the policy's observer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.backends.triton.available import computes_on
from actcodec.codecs import Codec
from actcodec.golden.sfpr import NONFINITE_POLICIES, UnfitValuesError
from actcodec.policies import kernels
from actcodec.policies.few_bits import FewBitsWarning, warning_of
from actcodec.policies.policy import CODED_DTYPES, EXACT, GroupObserver, Policy, SavedTensor
from actcodec.saved.facts import Facts
from actcodec.saved.forms import Coded, Exact, Form
from actcodec.saved.kept import Begun, Kept
from actcodec.saved.operations import CHECKPOINT, UNKNOWN, Operation
from actcodec.saved.second_order import weight_of
from actcodec.saved.statistics import Statistics, TensorRecord, relative_error

#: Used in place of a codec's name for a tensor that is exact because it belongs to a loss.
LOSS = "loss"
#: Options for a tensor whose values its codec cannot hold: NaN, infinity, or values beyond the range of a 16-bit form.
RAISE, SATURATE = NONFINITE_POLICIES
_UNKNOWN = "what TorchScript, custom autograd functions and fused operators save"
#: Least rank of activations.
LEAST_RANK = 2
#: Default size in bytes below which tensors stay exact.
LEAST_BYTES = 1 << 8


def check_switch(name: str, value: object) -> None:
    """Raise UserError for a switch that is neither True nor False."""
    if not isinstance(value, bool):
        raise UserError(f"{name} = {value!r} is not allowed: use True or False")


@dataclass(frozen=True)
class Limits:
    """Limits of compression that hold whatever the policy says.

    Parameters
    ----------
    modules
        Modules in which tensors are compressed.
    min_bytes
        Least size of a compressed tensor, 0 or more.
    checkpoints
        True to compress the tensors with which a checkpoint begins.
    compress_loss
        True to compress tensors that belong to a loss.
    double_backward
        True to keep tensors exactly on which the values of a gradient depend.

    Raises UserError if ``min_bytes`` is no whole number from 0 up, or a choice neither True nor False.
    """

    modules: Container[str]
    min_bytes: int = LEAST_BYTES
    checkpoints: bool = False
    compress_loss: bool = False
    double_backward: bool = False

    def __post_init__(self) -> None:
        if not is_whole(self.min_bytes, 0):
            raise UserError(f"min_bytes = {self.min_bytes!r} is not allowed: use a whole number, 0 or more")
        for name in ("checkpoints", "compress_loss", "double_backward"):
            check_switch(name, getattr(self, name))

    def leave_out(self, facts: Facts, tensor: SavedTensor) -> bool:
        """Return whether a tensor is kept exactly."""
        return (
            facts.nbytes < self.min_bytes
            or (tensor.consumer == CHECKPOINT and not self.checkpoints)
            or tensor.module not in self.modules
        )


class Compression:
    """Apply a policy in one context.

    Parameters
    ----------
    policy
        Chooses codecs. Its observer, if it has one, follows the context.
    limits
        Tensors that the policy is not asked about.
    measure_error
        True to rebuild every kept tensor at once and measure its error.
    strict
        True to raise for a tensor that its codec cannot hold; otherwise it is kept exactly, with a warning for the first one.
    """

    def __init__(self, policy: Policy, limits: Limits, *, measure_error: bool, strict: bool) -> None:
        self._policy, self.limits = policy, limits
        self._observer = policy.observer()
        self._groups = self._observer if isinstance(self._observer, GroupObserver) else None
        self._measure_error, self._strict = measure_error, strict
        self._warned = self._warned_of_bits = False
        self._choices = 0
        #: Compression that has begun on a device.
        self.begun = Begun()

    @property
    def companions(self) -> bool:
        """Return whether masks, indices and shapes are kept in lossless forms, as in :class:`Policy`."""
        return self._policy.companions

    @property
    def keep_signs(self) -> bool:
        """Return whether signs are kept (:class:`Policy`); values of gradients depend on signs, too."""
        return self._policy.keep_signs or self.limits.double_backward

    @property
    def observed(self) -> bool:
        """Return whether the policy's observer follows operations that end."""
        return self._observer is not None

    def codec_for(self, facts: Facts, tensor: SavedTensor) -> Codec | None:
        """Return the policy's codec for a tensor; None for tensors that stay exact under any policy."""
        x, operation = facts.tensor, facts.operation
        unsuitable = (
            x.ndim < LEAST_RANK
            or facts.layout.overlaps
            or self.limits.leave_out(facts, tensor)
            or (tensor.consumer == UNKNOWN and x.grad_fn is None)
            or (operation is not None and operation.is_side_argument(x))
        )
        codec = None if unsuitable else self._policy.choose(tensor)
        return None if self._loses_values(x, codec, operation) else codec

    def _loses_values(self, x: Tensor, codec: Codec | None, operation: Operation | None) -> bool:
        """Return whether a codec would change the values of gradients that have to be exact."""
        if codec is None or not self.limits.double_backward:
            return False
        return not (codec.lossless or codec.signs_only) and weight_of(x, operation) is None

    def _has_own_form(self, x: Tensor, codec: Codec, operation: Operation) -> bool:
        """Return whether no group may stand in for ``x``: values of gradients are exact, or signs that no group holds."""
        if codec.lossless:
            return self.limits.double_backward
        return codec.signs_only and self.keep_signs and not self.has_signs(x, operation)

    @property
    def compresses(self) -> bool:
        """Return whether the policy compresses anything."""
        return bool(self._policy.codecs_of_rules)

    def uncoded(self, facts: Facts, tensor: SavedTensor) -> str:
        """Return the reason why a tensor without codec is kept exactly though the policy compresses tensors like it.

        The reason is empty if the policy or the limits of the context leave the tensor out.
        """
        if facts.tensor.ndim < LEAST_RANK or self.limits.leave_out(facts, tensor):
            return ""
        if not tensor.smooth and self._policy.choose(replace(tensor, smooth=True)) is not None:
            return (
                _UNKNOWN if tensor.consumer == UNKNOWN else f"what {tensor.function} saves, whose gradient tolerates no error"
            )
        if tensor.dtype not in CODED_DTYPES and self._policy.choose(replace(tensor, dtype=CODED_DTYPES[0])) is not None:
            return f"activations in {str(tensor.dtype).removeprefix('torch.')}"
        return ""

    def kept(self, facts: Facts, tensor: SavedTensor, codec: Codec | None) -> Kept:
        """Compress a tensor with ``codec``; keep it as it is for None, or if the codec cannot hold its values or adds bytes."""
        x, operation = facts.tensor, facts.operation
        if codec is None:
            return self.kept_as(x, LOSS if tensor.loss else EXACT, Exact(x, facts.nbytes))
        choice, lossless = self._choices, codec.lossless
        self._choices += 1
        if self._observer is not None:
            codec = self._observer.codec_of(tensor, codec)
            if self._groups is not None and operation is not None and not self._has_own_form(x, codec, operation):
                codec = self._groups.member_codec(x, tensor, codec, operation)
        self._warn_of_few_bits(tensor, codec)
        if x.device.type == "cuda":
            self._warn_of_kernels(codec)
        at_once = self._measure_error or not computes_on(x.device.type)
        try:
            with naming(tensor.module):
                form = Coded(x, codec, at_once=at_once)
        except UnfitValuesError as error:
            self._refused(error, tensor.module)
            return self.kept(facts, tensor, None)
        if form.begun:
            return Kept(form, codec.name, None, choice, partial(self._ended, Exact(x, facts.nbytes), tensor, form, choice))
        # A lossless codec adds a header or a bit per value at most, and its copies stay right when the tensor changes.
        grown = form.nbytes > facts.nbytes and not (lossless or codec.lossless)
        return self.kept(facts, tensor, None) if grown else self.kept_as(x, codec.name, form, choice)

    def _ended(self, exact: Exact, tensor: SavedTensor, form: Coded, choice: int) -> Kept:
        """End lossy compression that has begun, and keep the tensor as :meth:`kept` does."""
        try:
            with naming(tensor.module):
                form.end()
        except UnfitValuesError as error:
            self._refused(error, tensor.module)
        else:
            if form.nbytes <= exact.nbytes:
                return Kept(form, form.codec.name, None, choice)
        return Kept(exact, LOSS if tensor.loss else EXACT)

    def kept_as(self, x: Tensor, codec: str, form: Form, choice: int | None = None) -> Kept:
        """Return a form of ``x`` with its error, if errors are measured."""
        error = None
        if self._measure_error:
            error = 0.0 if isinstance(form, Exact) else relative_error(x, form.tensor(), codec)
        return Kept(form, codec, error, choice)

    def has_signs(self, x: Tensor, operation: Operation) -> bool:
        """Return whether the policy keeps the signs of ``x`` in any case."""
        return self._groups is not None and self._groups.has_signs(x, operation)

    def counted(self, form: Form, record: TensorRecord) -> None:
        """Tell the policy that ``record`` is the entry of the tensor that ``form`` keeps."""
        if self._groups is not None and isinstance(form, Coded):
            self._groups.counted(form.codec, record)

    def replaced(self, form: Form, record: TensorRecord) -> None:
        """Tell the policy that ``record`` is no longer the entry of the tensor that ``form`` keeps."""
        if self._groups is not None and isinstance(form, Coded):
            self._groups.replaced(form.codec, record)

    def finished(self, operation: Operation, result: Any, module: Callable[[], str]) -> None:
        """Tell the policy that an operation has ended; ``module`` returns the name of the module in which it ran."""
        if self._observer is not None and (operation.saved or self._policy.every_operation):
            try:
                self._observer.finished(operation, result)
            except UnfitValuesError as error:
                self._refused(error, module())

    def close(self, statistics: Statistics) -> None:
        """Pass the statistics to the policy."""
        self._policy.context_closed(statistics)

    def _warn_of_few_bits(self, tensor: SavedTensor, codec: Codec) -> None:
        """Warn, once, if the policy is known to give noisy gradients for a tensor."""
        said = None if self._warned_of_bits else warning_of(self._policy, tensor, codec)
        if said is not None:
            self._warned_of_bits = True
            warnings.warn(said, FewBitsWarning, stacklevel=2)

    def _warn_of_kernels(self, codec: Codec) -> None:
        """Warn, once for a policy, if a codec has no kernels for the GPU of a tensor."""
        said = None if self._policy.kernels_told else kernels.warning_of(self._policy, codec)
        if said is not None:
            self._policy.kernels_told = True
            warnings.warn(said, kernels.KernelsWarning, stacklevel=2)

    def _refused(self, error: UnfitValuesError, module: str) -> None:
        """Handle a tensor that its codec cannot hold: raise in strict mode, else warn of the first one."""
        self.begun.end()  # that of an earlier tensor, which may be the first one
        found = f"{module}: " * bool(module) + str(error).partition(":")[0]
        if self._strict:
            remedy = f'correct the values, or leave out nonfinite="{RAISE}", so that such tensors are kept exactly'
            raise type(error)(f"{found}: {remedy}") from None
        if not self._warned:
            self._warned = True
            consequence = "this tensor is kept exactly, and so are others like it in this context, without a further warning"
            warnings.warn(f'{found}: {consequence}; nonfinite="{RAISE}" raises instead', stacklevel=2)


class naming:  # noqa: N801
    """Put the name of the module before the message of a codec's error, while entered."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        if self._module and isinstance(raised, UserError) and not isinstance(raised, UnfitValuesError):
            raise type(raised)(f"{self._module}: {raised}") from None
