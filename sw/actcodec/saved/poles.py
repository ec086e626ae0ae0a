"""Keep factors of the tensors that a pole reads exactly, once an operation with a pole reads them.

``sqrt(d * d + eps)`` has the derivative d / sqrt(d * d + eps). The root is exact, but the product has saved d: where d is small
the derivative of the root is large, and multiplies the error of d. The same holds for every operation that has a pole (or an
end of its domain) and reads a product, a power, a quotient or an exponential: a value is near the pole where its factors are
near zero. The pole is not known yet when the product saves its factors.

Each such factor is therefore recorded exactly, together with the result of its operation, and with tensors that follow from
it by steps that pass gradients on (sums, limits, views). When a pole reads one of them, the exact factor replaces the codec's
form. The factor is forgotten when the result is freed, when a convolution, a linear layer or a normalisation saves it, after
:data:`MOST_STEPS` steps, and where a sum or mean of more than :data:`FEW` values averages the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from actcodec.saved.forms import Exact
from actcodec.saved.kept import Saved
from actcodec.saved.operations import Operation, plain, tensors_in

#: Most steps between a product and a pole, and most values that a sum on the way may add up.
MOST_STEPS, FEW = 8, 8


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


QUOTIENTS = _names("div divide truediv itruediv truedivide")
POWERS = _names("pow ipow")
#: Operations whose result is near zero, or near an end of its range, where a tensor that they save is.
PRODUCTS = (
    _names("mul imul rmul multiply addcmul square lerp exp exp2 expm1 sigmoid specialexpit tanh softplus erf erfc softmax")
    | QUOTIENTS
    | POWERS
)
REDUCTIONS = _names("sum mean nansum nanmean")
#: Operations whose gradient is that of their result times a factor.
STEPS = (
    _names("add iadd radd sub isub rsub subtract neg negative abs absolute relu clamp clip clampmin clampmax where maskedfill")
    | _names("maximum minimum max min amax amin cat stack concat chunk split unbind diff roll cumsum getitem gather")
    | _names("view viewas reshape flatten unflatten unsqueeze squeeze transpose permute movedim get expand repeat indexselect")
    | _names("contiguous clone to type float double half bfloat16")
    | PRODUCTS
    | REDUCTIONS
)
_FIRST = _names(
    "sqrt rsqrt log log2 log10 log1p reciprocal rdiv rtruediv acos arccos asin arcsin acosh arccosh atanh arctanh logit "
    "speciallogit specialentr digamma lgamma erfinv binarycrossentropy poissonnllloss"
)
#: Operations with a pole, with the position of the argument that has it.
POLES = dict.fromkeys(_FIRST, 0) | dict.fromkeys(QUOTIENTS | _names("xlogy specialxlogy"), 1)
POLES |= {"addcdiv": 2, "gaussiannllloss": 2}
_DENOMINATOR, _EXPONENT = 1, 1


@dataclass(frozen=True)
class Factor:
    """A tensor that an operation has saved in a codec's form."""

    saved: Saved
    exact: Exact  #: the tensor itself
    steps: int = 0  #: steps from the result of the operation to the current tensor
    averaged: float = 1.0  #: number of values that were added up on the way

    def behind(self, name: str, argument: Tensor, result: Tensor) -> Factor:
        """Return the factor after one more step."""
        ratio = argument.numel() / max(1, result.numel()) if name in REDUCTIONS else 1.0
        return replace(self, steps=self.steps + 1, averaged=self.averaged * ratio)

    @property
    def counts(self) -> bool:
        """Return whether a pole would multiply its error."""
        return self.steps <= MOST_STEPS and self.averaged <= FEW


class Poles:
    """The factors behind the tensors that are alive, while one context is open."""

    def __init__(self) -> None:
        self._factors: Any = WeakTensorKeyDictionary()
        self._has_factors = False  #: True once there has been one; the dictionary is slow to tell

    def saved(self, x: Tensor, saved: Saved, operation: Operation) -> None:
        """Record ``x``, which an operation saves in a codec's form."""
        if plain(operation.function) in PRODUCTS:
            operation.factors.append(Factor(saved, Exact(x)))

    def read(self, operation: Operation) -> None:
        """Forget the factors of tensors that an operation saves if it is neither a step nor a pole."""
        if self._has_factors and not _is_known(plain(operation.function)):
            for argument in operation.tensors():
                self._factors.pop(argument, None)

    def finished(self, operation: Operation, result: Any) -> list[Factor]:
        """Pass the factors of an operation's arguments on to its result; return the factors whose error it multiplies."""
        factors: list[Factor] = operation.factors
        multiplied: list[Factor] = []
        if self._has_factors:
            name = plain(operation.function)
            for argument in _at_pole(operation, name):
                multiplied += self._factors.get(argument, ())
            if name in STEPS:
                factors = [*factors, *self._handed_on(name, operation, result)]
        if factors:
            for tensor in tensors_in((result,)):
                if tensor.grad_fn is not None:
                    mine = {id(factor.saved): factor for factor in (*self._factors.get(tensor, ()), *factors)}
                    self._factors[tensor] = tuple(mine.values())
                    self._has_factors = True
        return multiplied

    def _handed_on(self, name: str, operation: Operation, result: Any) -> Iterator[Factor]:
        first = next(tensors_in((result,)), None)
        if first is None:
            return
        arguments = operation.args[:_DENOMINATOR] if name in QUOTIENTS else (*operation.args, *operation.kwargs.values())
        for argument in tensors_in(arguments):
            for factor in self._factors.get(argument, ()):
                behind = factor.behind(name, argument, first)
                if behind.counts:
                    yield behind


def _is_known(name: str) -> bool:
    return name in STEPS or name in POLES


def _at_pole(operation: Operation, name: str) -> Iterator[Tensor]:
    """Yield the arguments in which an operation has a pole."""
    if name in POWERS:
        exponent = operation.argument(_EXPONENT, "exponent", None)
        if isinstance(exponent, (int, float)) and exponent >= 1:
            return
        yield from tensors_in(operation.args[:1])
    elif name in POLES:
        place = POLES[name]
        yield from tensors_in(operation.args[place : place + 1])
        yield from tensors_in(operation.kwargs.values())
