"""The door: compiles a model with torch.compile so that kept values are coded, under a budget in bytes where one is given."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_real, is_whole
from torch import fx, nn

from actcodec.graph.budget import TOLERANCE, Budget, Row, keeps_all, preference
from actcodec.graph.choices import Choices, action_of
from actcodec.graph.fallback import Fallback, plain_call, raise_own, reason, state_of, warn_of_recurrent_layers
from actcodec.graph.formats import VALUE_FORMATS, format_of
from actcodec.graph.live_bytes import peak_of_step
from actcodec.graph.partition import Action, Partitioner, Saved
from actcodec.graph.plan import TooLittleError, table
from actcodec.graph.segments import Roles, compile_in_parts
from actcodec.graph.survey import Survey
from actcodec.graph.torch_private import CompilerError, check_version, inductor, notices_hooks, partitioner
from actcodec.training.selection import check_model, check_shapes

#: Formats to choose among under a budget, from the finest to the coarsest.
FORMATS = ("int16", "int8", "int6", "int5", "int4-group", "int4")
#: Times that a choice is compiled and measured, at most.
MOST_TRIES = 4
#: Share of a peak by which it may differ from what is predicted after a first try.
_MARGIN = 0.003

Step = Callable[[], object]


class Compiled:
    """A model that torch.compile compiles with coded values between forward and backward; made by :func:`compiled`."""

    def __init__(
        self, model: nn.Module, choices: Choices, parts: int | None, rows: Sequence[Row] = (), peak: int | None = None
    ) -> None:
        self.model, self.choices, self.rows, self.peak = model, choices, list(rows), peak
        self._call = Fallback(model, _compiled_call(model, _Backend(choices, parts)), choices.default)
        _call_by(model, self._call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model."""
        return self.model(*args, **kwargs)

    def report(self) -> str:
        """Return a table of the kept values: where each is made, its bytes, how it is kept, and its error of the gradient."""
        lines = [
            {
                "module": row.saved.module or "-",
                "operation": row.saved.operation,
                "MiB": f"{row.saved.nbytes / 2**20:.2f}",
                "kept as": row.chosen.action,
                "kept MiB": f"{row.chosen.nbytes / 2**20:.2f}",
                "gradient error": f"{row.chosen.loss**0.5:.1e}",
            }
            for row in self.rows
        ]
        return table(lines) or f"every value that suits it is kept as {self.choices.default}"

    def close(self) -> None:
        """Run the model as it was written again, unless it has been compiled anew since."""
        if self.model._compiled_call_impl is self._call:
            _call_by(self.model, None)


def compiled(
    model: nn.Module,
    policy: str | Sequence[str] | None = None,
    *,
    budget: float | None = None,
    step: Step | None = None,
    recompute: float = 0.0,
    parts: int | None = None,
) -> Compiled:
    """Compile a model in place, as ``nn.Module.compile`` does, with values coded that the forward keeps for the backward.

    Parameters
    ----------
    model
        Its forward is compiled by inductor at the first call; names of parameters and its class stay.
    policy
        A format, by default ``int8``, or with a budget the formats to choose among, the finest first; by default
        :data:`FORMATS`.
    budget
        Most bytes of tensors that live at any moment of a step above those before it; at most 1, a share of the peak of the
        model as it is written.
    step
        With a budget: takes one step with the model, forward, loss and backward, on a batch of its own. It runs some times
        gradients, buffers and random numbers are put back.
    recompute
        Largest share of the step's products that may be computed again instead of kept.
    parts
        Number of parts that are compiled one by one, so that gradients of parameters leave early; found if not given.

    A ``torch.compile`` around the model compiles what is around it; with ``fullgraph=True`` torch refuses it.

    A model that does not compile runs as it was written, with the policy of ``compress_activations`` that is nearest to the
    format, after one :class:`~actcodec.graph.fallback.NotCompiledWarning` that names the reason.

    Raises UserError for a budget below what is possible, with the least one; for a budget when the model does not compile; for
    other arguments than these; for a release of torch that has not been tested. The model then runs as before.
    """
    check_version()
    names = _checked(model, policy, budget, step, recompute, parts)
    warn_of_recurrent_layers(model)
    if budget is None or step is None:
        return Compiled(model, Choices(names[0]), parts)
    before = model._compiled_call_impl
    try:
        return _within(model, names, budget, step, recompute, parts)
    except BaseException as error:
        _call_by(model, before)
        if isinstance(error, CompilerError):
            raise_own(error)
            raise UserError(f"a budget needs a model that compiles ({reason(error)}): give a policy alone") from error
        raise


def _checked(model: Any, policy: Any, budget: Any, step: Any, recompute: Any, parts: Any) -> tuple[str, ...]:
    """Return the names of the formats; raise UserError for what :func:`compiled` does not take."""
    check_model(model)
    if policy is None:
        policy = FORMATS[0] if budget is None else FORMATS
    names = (policy,) if isinstance(policy, str) else tuple(policy) if isinstance(policy, Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise UserError(f"policy = {policy!r} is not allowed: use the name of a format, or with a budget several names")
    for name in names:
        format_of(name, VALUE_FORMATS)
    if parts is not None and not is_whole(parts, 1):
        raise UserError(f"parts = {parts!r} is not allowed: use a whole number from 1 up, or leave it out")
    if not is_real(recompute, 0, 1):
        raise UserError(f"recompute = {recompute!r} is not allowed: use a share from 0 to 1")
    if budget is None:
        if len(names) != 1:
            raise UserError(f"{len(names)} formats are given without a budget: give one format, or budget= and step=")
        if step is not None or recompute:
            raise UserError("step= or recompute= is given without a budget: leave it out, or give budget=, too")
        return names
    if not callable(step):
        raise UserError("a budget is given without a step to measure: give step=, a function that runs forward and backward")
    if not is_real(budget) or not 0 < budget < inf:
        raise UserError(f"a budget of {budget!r} bytes is not allowed: give a number of bytes, or a share of the peak up to 1")
    check_shapes(model)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError("a budget is given for a model that trains no parameter: give a policy alone")
    return names


def _within(model: nn.Module, names: Sequence[str], budget: float, step: Step, recompute: float, parts: int | None) -> Compiled:
    device = next(model.parameters()).device
    with _put_back(model):
        _call_by(model, None)
        nbytes = int(budget) if budget > 1 else int(budget * _measured(model, step, device))
        survey = Survey([format_of(name) for name in names])
        _call_by(
            model, _compiled_call(model, lambda graph, inputs: compile_in_parts(graph, inputs, survey.compile_part, parts))
        )
        step()
        if not any(part.ended for part in survey.parts):
            raise UserError(
                "no compiled part of the model runs forward and backward in the step: give one that calls the model "
                "with gradients"
            )
        _clear(model)
        survey.count(step, device)
        plan = Budget(survey, names, recompute)
        tried: list[Compiled] = []
        error = 1.0
        for _ in range(MOST_TRIES):
            choices, rows, told = _scheduled(plan, nbytes, error)
            if any(choices == one.choices for one in tried):
                break
            found = Compiled(model, choices, parts, rows)
            step()
            found.peak = _measured(model, step, device)
            tried.append(found)
            if (1 - TOLERANCE) * nbytes <= found.peak <= nbytes or (found.peak <= nbytes and keeps_all(rows)):
                break
            error = (1 + (_MARGIN if found.peak > nbytes else -_MARGIN)) * found.peak / told
        best = min(tried, key=lambda one: preference(one.peak or 0, nbytes, one.rows))
        if best.peak is not None and best.peak > nbytes:
            raise TooLittleError(nbytes, best.peak)
        if best is not found:
            best = Compiled(model, best.choices, parts, best.rows, best.peak)
            step()
    return best


def _scheduled(plan: Budget, nbytes: int, error: float) -> tuple[Choices, list[Row], int]:
    """Return the best choice whose peak in inductor's schedule, times ``error``, is within a budget, and that peak.

    The schedule may bring the choice above the planned one below the budget, too.
    """
    found: list[tuple[Choices, list[Row], int]] = []
    told = error
    for _ in range(MOST_TRIES):
        new = [one for one in plan.choices(nbytes, told) if not any(one[0] == other for other, _, _ in found)]
        if not new:
            break
        found += [(choices, rows, plan.scheduled_peak(choices)) for choices, rows in new]
        _, rows, peak = min(found, key=lambda one: preference(int(error * one[2]), nbytes, one[1]))
        if (1 - TOLERANCE) * nbytes <= error * peak <= nbytes or (error * peak <= nbytes and keeps_all(rows)):
            break
        planned, _, peak = found[-len(new)]
        told = error * peak / plan.peak(planned)
    return min(found, key=lambda one: preference(int(error * one[2]), nbytes, one[1]))


def _clear(model: nn.Module) -> None:
    """Let gradients be tensors of zeros, which a step adds to."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)


def _measured(model: nn.Module, step: Step, device: torch.device) -> int:
    _clear(model)
    return peak_of_step(step, device)


@contextlib.contextmanager
def _put_back(model: nn.Module) -> Iterator[None]:
    """Put back gradients, buffers and states of random numbers."""
    gradients = {parameter: parameter.grad for parameter in model.parameters()}
    put_back = state_of(model)
    for parameter in gradients:
        parameter.grad = None
    try:
        yield
    finally:
        put_back()
        for parameter, gradient in gradients.items():
            parameter.grad = gradient


def _call_by(model: nn.Module, call: Callable[..., Any] | None) -> None:
    """Let a call stand for calls of a model, or run the model as it is written.

    A compiler of what is around the model would go straight to a forward of the class. With one of the object it comes to the
    call, which :class:`Fallback` bars it from. Copies of the model, which run as it is written, go without that forward, since
    that of a shallow copy would run the model itself.
    """
    model._compiled_call_impl = call
    own = vars(model).get("forward")
    if call is not None and own is None:
        vars(model)["forward"] = MethodType(type(model).forward, model)
        vars(model)["__getstate__"] = partial(_state_of_copy, model)
    elif call is None and isinstance(own, MethodType) and own.__func__ is type(model).forward:
        del model.forward
        vars(model).pop("__getstate__", None)


def _state_of_copy(model: nn.Module) -> Any:
    """Return what a copy or a pickle of a compiled model takes over."""
    state = type(model).__getstate__(model)  # type: ignore[no-untyped-call]
    own = ("forward", "__getstate__")
    return {name: value for name, value in state.items() if name not in own} if isinstance(state, dict) else state


def _compiled_call(model: nn.Module, backend: Callable[..., Any]) -> Callable[..., Any]:
    call: Callable[..., Any] = torch.compile(partial(plain_call, model), backend=backend, isolate_recompiles=True)  # type: ignore[call-overload]

    def guarded(*args: Any, **kwargs: Any) -> Any:
        with notices_hooks():
            return call(*args, **kwargs)

    return guarded


class _Backend:
    """Compiles the graphs of one model with one choice."""

    def __init__(self, choices: Choices, parts: int | None) -> None:
        self._choices, self._parts = choices, parts

    def __call__(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        counts = Counter[str]()

        def part(one: fx.GraphModule, given: Sequence[Any], roles: Roles) -> Callable[..., Any]:
            before = Counter(counts)

            def choose(saved: Sequence[Saved]) -> list[Action]:
                return [action_of(name) for name in self._choices.of(saved, counts)]

            key = f"{_source()} {self._choices!r} {sorted(before.items())} {roles!r}"
            return inductor(one, given, partitioner(Partitioner(choose, roles), hashlib.sha256(key.encode()).hexdigest()))

        return compile_in_parts(graph, inputs, part, self._parts)


def _source() -> str:
    """Return a digest of the code that rewrites graphs, for the compiler's cache."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()
