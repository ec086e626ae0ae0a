"""Compute AC-GC's error bounds for tensors saved by pointwise functions: not in the paper, derived in docs/methods/acgc.md.

With z = f(x), ``dX = G * f'``. Where f' is computed from a value with the error D it is off by at most ``L * |D|``, L being the
greatest slope of f' over the saved value, so that ``dx**2 = e**2 * ||dX||**2 / (L**2 * ||G||**2)``; nothing adds up, and errors
that are independent have no better bound.

===========================  ====================  ============================================  =========================
tanh     ``f' = 1 - z**2``     ``||G z||**2 = ||G||**2 - <G, dX>``           off by ``2 z D + D**2``
sigmoid  ``f' = z - z**2``     ``||G (1 - 2 z)||**2 = ||G||**2 - 4 <G, dX>``  off by ``(1 - 2 z) D - D**2``
cube     ``f' = 3 x**2``       ``||G x||**2 = <G, dX> / 3``                  off by ``6 x D + 3 D**2``
=======  ====================  ============================================  =========================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi, sqrt

import torch
from torch import Tensor
from torch.autograd.graph import Node

from actcodec.policies.bounds.scalar_bounds import Demand, squared_norm

#: L by the name of the node that computes the gradient.
STEEPNESS = {
    "GeluBackward0": sqrt(2 / pi),
    "SiluBackward0": 0.5,
    "MishBackward0": 0.64421,
    "LogSigmoidBackward0": 0.25,
    "ExpBackward0": 1.0,
}
_SOFTPLUS, _POWER, _TANH, _SIGMOID = "SoftplusBackward0", "PowBackward0", "TanhBackward0", "SigmoidBackward0"
#: Nodes that have a bound; a power has one for some exponents only.
POINTWISE_NODES = frozenset((*STEEPNESS, _SOFTPLUS, _POWER, _TANH, _SIGMOID))
#: The greatest error of tanh and sigmoid, whose results are at most 1.
_RESULT_LIMIT = 1 / 8
#: The greatest error of a base that is cubed, in units of its root mean square (weighted by the gradient).
_BASE_LIMIT = 1 / 4
_SQUARE, _CUBE = 2, 3
#: Bound on a quantiser's greatest error in units of its RMS error: one step, or 2 dx.
_PEAK = 2.0


def has_pointwise_bound(node: Node) -> bool:
    """Return whether a node belongs to a function of the module's tables."""
    name = node.name()
    return name in POINTWISE_NODES and (name != _POWER or _exponent(node) in (_SQUARE, _CUBE))


def pointwise_demand_of(node: Node) -> Callable[[Tensor, Tensor], Demand]:
    """Return the function of G and dX, any shape, that computes a node's bound, whether its input or result is saved."""
    name, exponent = node.name(), _exponent(node)
    if name in (_TANH, _SIGMOID):
        return partial(_of_result, name)
    if exponent == _CUBE:
        return _of_cube
    steepness = (
        _SQUARE if exponent == _SQUARE else getattr(node, "_saved_beta", 1.0) / 4 if name == _SOFTPLUS else STEEPNESS[name]
    )
    return partial(_of_steepness, float(steepness))


def _of_steepness(steepness: float, gradient: Tensor, input_gradient: Tensor) -> Demand:
    weight = steepness**2 * squared_norm(gradient).view(1)
    return Demand(squared_norm(input_gradient), weight, torch.full_like(weight, torch.inf))


def _of_result(name: str, gradient: Tensor, input_gradient: Tensor) -> Demand:
    g, inner = squared_norm(gradient), _inner(gradient, input_gradient)
    first = 2 * (g - inner).clamp_min(0).sqrt() if name == _TANH else (g - 4 * inner).clamp_min(0).sqrt()
    weight = (first + _PEAK * _RESULT_LIMIT * g.sqrt()).square().view(1)
    return Demand(squared_norm(input_gradient), weight, torch.full_like(weight, _RESULT_LIMIT))


def _of_cube(gradient: Tensor, input_gradient: Tensor) -> Demand:
    g, base = squared_norm(gradient), (_inner(gradient, input_gradient) / 3).clamp_min(0).sqrt()
    limit = torch.where(g > 0, _BASE_LIMIT * base / g.sqrt(), torch.inf)
    weight = (6 * base + 3 * _PEAK * _BASE_LIMIT * base).square()
    return Demand(squared_norm(input_gradient), weight.view(1), limit.view(1))


def _inner(gradient: Tensor, input_gradient: Tensor) -> Tensor:
    return (gradient.detach().to(torch.float64) * input_gradient.detach().to(torch.float64)).sum()


def _exponent(node: Node) -> float | None:
    exponent = getattr(node, "_saved_exponent", None)
    return exponent if isinstance(exponent, (int, float)) else None
