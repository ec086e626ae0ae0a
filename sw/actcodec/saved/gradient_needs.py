"""Table of the needs of each torch function's backward pass: values, sizes or regions of its saved tensors.

A gradient tolerates small errors of a saved tensor where its formula is smooth in that tensor. It does not where the formula

- tests the tensor for equality: ``amax`` gives its gradient to the values that equal its result. Values that are rebuilt
  separately from the result do not equal it, and the gradient is 0/0, or zero;
- has a pole, or an end of its domain: ``sqrt``, ``log``, the denominator of ``div``, ``prod``. A value that is rounded to
  zero, or beyond it, makes the gradient infinite, or NaN.

A 2-norm has its pole where all its values are zero at once: it tolerates errors that are small relative to it
(:func:`norm_of`).

A function is therefore assumed to tolerate errors only if it is known to (:data:`SMOOTH`, :data:`BY_ARGUMENTS`); tensors saved
by any other function are kept exactly, which includes functions of later torch versions. Some functions need less than values
in backward: sizes (:data:`SIZES`), or the region that each value lies in (:data:`REGIONS`, :data:`EXTREMES`); these are kept
exactly.

Names are function names without underscores, so that ``Tensor.__mul__``, ``mul_`` and ``torch.mul`` are one. The table uses
names because no graph node exists when the pack hook is called: the function has not ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from actcodec.codecs.tensor_kinds import same_storage
from actcodec.saved.operations import Operation, plain

_RANKS = (1, 2, 3)


def _names(*lists: str) -> frozenset[str]:
    return frozenset(name for names in lists for name in names.split())


#: Functions whose gradients tolerate small errors of every tensor that they save.
SMOOTH = _names(
    # Products: linear in each factor.
    "conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d convolution convtbc",
    "linear matmul rmatmul mm mv bmm dot vdot inner linalgvecdot outer ger addmm addmv addbmm baddbmm addr",
    "einsum tensordot chainmatmul linalgmultidot kron bilinear cross linalgcross",
    "mul imul rmul multiply addcmul lerp square",
    # The statistics of normalisations are kept exactly.
    "batchnorm instancenorm layernorm groupnorm rmsnorm nativebatchnorm nativelayernorm nativegroupnorm var varmean",
    # Activations whose derivative is continuous, or bounded and wrong only near its steps.
    "relu gelu silu mish elu celu selu softplus logsigmoid sigmoid specialexpit tanh tanhshrink hardswish glu prelu leakyrelu",
    "softsign atan arctan asinh arcsinh",
    "exp exp2 expm1 erf erfc softmax softmin dropout dropout1d dropout2d dropout3d",
    "alphadropout featuredropout featurealphadropout",
    "scaleddotproductattention multiheadattentionforward",
    "lstm gru rnntanh rnnrelu lstmcell grucell rnntanhcell rnnrelucell",
)

_SUFFIXES = ("", "withindices")
#: Functions that save their input, and no other floating-point tensor, for its sizes: ``pad`` with mode reflect or replicate,
#: ``interpolate`` with mode area. A max pool saves indices as well.
SIZES = _names("gather takealongdim take maskedselect indexadd indexcopy interpolate pad") | {
    *(f"{kind}avgpool{rank}d" for kind in ("", "adaptive") for rank in _RANKS),
    *(f"{kind}maxpool{rank}d{suffix}" for kind in ("", "adaptive") for rank in _RANKS for suffix in _SUFFIXES),
    *(f"fractionalmaxpool{rank}d{suffix}" for rank in (2, 3) for suffix in _SUFFIXES),
}

#: Reductions of ``scatter_reduce`` that save tensors for their sizes alone.
_COUNTING = ("sum", "mean")


def needs_sizes(operation: Operation) -> bool:
    """Return whether an operation saves floating-point tensors for their sizes alone."""
    name = plain(operation.function)
    return name in SIZES or (name == "scatterreduce" and operation.argument(4, "reduce", "") in _COUNTING)


def _numerator(operation: Operation, x: Tensor) -> bool:
    """Return whether ``x`` is the numerator of a quotient alone; the denominator's gradient divides by its square."""
    if len(operation.args) < len(("input", "other")):
        return False
    numerator, denominator = operation.args[:2]
    return _is(x, numerator) and not _is(x, denominator)


def _whole_power(operation: Operation, x: Tensor) -> bool:
    """Return whether the exponent is a whole number from 2; other powers have a pole at zero, or no real value below it."""
    exponent = _arguments(operation, {"input": None, "exponent": None})["exponent"]
    return isinstance(exponent, (int, float)) and exponent >= 2 and float(exponent).is_integer()


@dataclass(frozen=True)
class Norm:
    """2-norms along some axes, or along all if none are given: of values, or of their deviations from the mean."""

    axes: tuple[int, ...] = ()
    centred: bool = False

    def of(self, x: Tensor) -> Tensor:
        """Compute the norms in the shape of ``x`` with extent 1 along the axes."""
        axes = self.axes or tuple(range(x.ndim))
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        values = x - x.mean(axes, keepdim=True) if self.centred else x
        norms: Tensor = torch.linalg.vector_norm(values, dim=axes, keepdim=True)
        return norms


#: Arguments that do not change which norms are taken.
_ANY_NORMS = ("keepdim", "dtype", "out", "eps", "unbiased", "correction")


@dataclass(frozen=True)
class _Norms:
    """A function that takes 2-norms of its first argument.

    ``defaults`` maps the names of the arguments, in order, to their defaults. ``order`` names the argument that selects the
    norm, and ``two`` lists its values for this norm; with any other value the function counts as unknown.
    """

    defaults: dict[str, Any]
    order: str = ""
    two: tuple[Any, ...] = (2,)
    centred: bool = False

    def of(self, operation: Operation, x: Tensor) -> Norm | None:
        """Return the norms of ``x``; None if the function takes no 2-norms of it."""
        arguments = _arguments(operation, self.defaults)
        if not arguments.keys() <= {*self.defaults, *_ANY_NORMS}:
            return None
        axes = arguments["dim"]
        if isinstance(axes, bool):  # ``std(input, unbiased)``
            axes = None
        if self.order and not self._is_two(arguments[self.order], axes):
            return None
        if not _is_or_copies(x, arguments[next(iter(self.defaults))]):
            return None
        return Norm(() if axes is None else (axes,) if isinstance(axes, int) else tuple(axes), self.centred)

    def _is_two(self, order: Any, axes: Any) -> bool:
        # Over two axes the order 2 means the spectral norm, where "fro" or None mean the norm of the values.
        matrix = None in self.two and (axes is None or (not isinstance(axes, int) and len(axes) > 1))
        return order in self.two and not (matrix and order == 2)


#: Functions that take 2-norms.
NORMS = {
    "linalgvectornorm": _Norms({"x": None, "ord": 2, "dim": None}, "ord"),
    "linalgnorm": _Norms({"A": None, "ord": None, "dim": None}, "ord", (None, "fro", 2)),
    "linalgmatrixnorm": _Norms({"A": None, "ord": "fro", "dim": (-2, -1)}, "ord", ("fro",)),
    "norm": _Norms({"input": None, "p": "fro", "dim": None}, "p", ("fro", 2)),
    "normalize": _Norms({"input": None, "p": 2, "dim": 1}, "p"),
    "std": _Norms({"input": None, "dim": None}, centred=True),
    "stdmean": _Norms({"input": None, "dim": None}, centred=True),
}


def norm_of(operation: Operation, x: Tensor) -> Norm | None:
    """Return the 2-norms that an operation takes of its argument ``x``; None if it takes none, or along unknown axes."""
    norms = None if operation.of_parts else NORMS.get(plain(operation.function))
    return None if norms is None else norms.of(operation, x)


def _normed(operation: Operation, x: Tensor) -> bool:
    """Return whether ``x`` is the argument of a norm. The norm, by which its gradient divides, stays exact."""
    return norm_of(operation, x) is not None


def _input(operation: Operation, x: Tensor) -> bool:
    """Return whether ``x`` is the first argument; the divisor of a normalisation, and sampling positions, stay exact."""
    return _is(x, operation.argument(0, "input", None))


def _added_numerator(operation: Operation, x: Tensor) -> bool:
    """Return whether ``x`` is the first factor of ``addcdiv``; the other one is a denominator."""
    return _is(x, operation.argument(1, "tensor1", None)) and not _is(x, operation.argument(2, "tensor2", None))


#: Functions that tolerate small errors of some of the tensors that they save.
BY_ARGUMENTS: dict[str, Callable[[Operation, Tensor], bool]] = {
    **dict.fromkeys(("div", "divide", "truediv", "itruediv", "truedivide"), _numerator),
    **dict.fromkeys(("pow", "ipow"), _whole_power),
    **dict.fromkeys(NORMS, _normed),
    "addcdiv": _added_numerator,
    **dict.fromkeys(("localresponsenorm", "gridsample", "gridsampler2d", "gridsampler3d"), _input),
}


@dataclass(frozen=True)
class Regions:
    """A function that is linear within each of a few regions.

    ``planes(x, arguments)`` returns one or two boolean tensors of the shape of ``x``; where they agree, so does the derivative.
    ``defaults`` maps the names of the arguments, in order, to their defaults.
    """

    defaults: dict[str, Any]
    planes: Callable[[Tensor, dict[str, Any]], tuple[Tensor, ...]]

    def of(self, operation: Operation, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return the planes of the tensor that an operation saves; None if its limits are tensors themselves."""
        arguments = _arguments(operation, {"input": None} | self.defaults)
        limits = [arguments[name] for name in self.defaults]
        return None if any(isinstance(limit, Tensor) for limit in limits) else self.planes(x, arguments)


def _backward(function: Any, *names: str) -> Callable[[Tensor, dict[str, Any]], tuple[Tensor, ...]]:
    """Return planes that are true where torch's own backward function passes the gradient, so that values at limits agree."""

    def planes(x: Tensor, arguments: dict[str, Any]) -> tuple[Tensor, ...]:
        return (function(torch.ones_like(x), x, *(arguments[name] for name in names)) != 0,)

    return planes


def _clamp(x: Tensor, arguments: dict[str, Any]) -> tuple[Tensor, ...]:
    passes = torch.ones_like(x, dtype=torch.bool)
    for name, within in (("min", torch.ge), ("max", torch.le)):
        if arguments.get(name) is not None:
            passes &= within(x, arguments[name])
    return (passes,)


_ATEN = torch.ops.aten
_HARDTANH = _backward(_ATEN.hardtanh_backward, "min_val", "max_val")
_ABS = Regions({}, lambda x, _: (x > 0, x < 0))
_CLIP = Regions({"min": None, "max": None}, _clamp)

#: Functions whose gradient depends only on the region that each value of their one saved tensor lies in.
REGIONS = {
    "relu6": Regions({}, lambda x, _: _HARDTANH(x, {"min_val": 0.0, "max_val": 6.0})),
    "hardtanh": Regions({"min_val": -1.0, "max_val": 1.0}, _HARDTANH),
    "hardsigmoid": Regions({}, _backward(_ATEN.hardsigmoid_backward)),
    "leakyrelu": Regions({}, lambda x, _: (x > 0,)),
    "threshold": Regions({"threshold": None, "value": None}, _backward(_ATEN.threshold_backward, "threshold")),
    "hardshrink": Regions({"lambd": 0.5}, _backward(_ATEN.hardshrink_backward, "lambd")),
    "softshrink": Regions({"lambd": 0.5}, _backward(_ATEN.softshrink_backward, "lambd")),
    "clamp": _CLIP,
    "clip": _CLIP,
    "clampmin": Regions({"min": None}, _clamp),
    "clampmax": Regions({"max": None}, _clamp),
    "abs": _ABS,
    "absolute": _ABS,
    "nantonum": Regions({}, lambda x, _: (x.isfinite(),)),
    "nansum": Regions({}, lambda x, _: (x.isnan(),)),
}

#: Functions among these whose regions are the signs.
SIGNS = _names("leakyrelu")

#: Functions whose gradient goes to the values that equal their result, the extreme along some or all axes, with the function
#: that computes it. ``max`` and ``min`` with more arguments than one are other functions.
EXTREMES: dict[str, Callable[..., Tensor]] = {"amax": torch.amax, "amin": torch.amin, "max": torch.amax, "min": torch.amin}


def extreme_of(operation: Operation, x: Tensor) -> Callable[[Tensor], Tensor] | None:
    """Return a function that computes the extreme of ``x``, with axes kept; None if ``operation`` computes no extreme of it."""
    name = plain(operation.function)
    function = EXTREMES.get(name)
    if function is None or (name in ("max", "min") and len(operation.args) + len(operation.kwargs) > 1):
        return None
    arguments = _arguments(operation, {"input": None, "dim": ()})
    axes = arguments.get("axis", arguments["dim"])
    return partial(function, dim=axes, keepdim=True) if _is(x, arguments["input"]) else None


def tolerates_errors(operation: Operation, x: Tensor) -> bool:
    """Return whether the gradient of an operation tolerates small errors of ``x``, which it saves."""
    name = plain(operation.function)
    return name in SMOOTH or (name in BY_ARGUMENTS and BY_ARGUMENTS[name](operation, x))


def _arguments(operation: Operation, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments by name. ``defaults`` lists names in order, with the values of arguments that were not given."""
    return defaults | dict(zip(defaults, operation.args, strict=False)) | operation.kwargs


def _is_or_copies(x: Tensor, argument: Any) -> bool:
    """Return whether a saved tensor is an argument, or autocast's copy of it."""
    if _is(x, argument):
        return True
    return isinstance(argument, Tensor) and argument.dtype != x.dtype and argument.shape == x.shape


def _is(x: Tensor, argument: Any) -> bool:
    """Return whether a saved tensor shares the storage of an argument."""
    return isinstance(argument, Tensor) and same_storage(x, argument)
