"""Predict the memory of a training step on fake tensors: no weights, no data, seconds for billions of parameters.

There are two methods. Code that runs operation by operation is run on tensors without values, and the lives of their storages
are followed (:mod:`~actcodec.study.live_storages`). Code that ``torch.compile`` compiles is traced and partitioned in the same
way, and the buffers of the two graphs are followed (:mod:`~actcodec.graph.timeline`). Workspace within kernels is not seen, nor
memory of an allocator beyond its tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from torch import Tensor, fx, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from actcodec.graph.choices import Choices, action_of
from actcodec.graph.formats import FORMATS
from actcodec.graph.partition import Action, Saved
from actcodec.graph.torch_private import DataDependentOutputException, DynamicOutputShapeException
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.recommended import families, measured
from actcodec.study.compiled_blocks import CompiledBlocks
from actcodec.study.live_storages import BACKWARD, FORWARD, UPDATE, LiveStorages, StoragePlace
from actcodec.study.memory_subject import Subject
from actcodec.study.step_script import checked_loss

NONE, CHECKPOINT, COMPILED, BLOCKS = "none", "checkpoint", "compiled", "compiled-blocks"
#: The formats of ``actcodec.compiled`` for whole tensors, by the name of their policy.
CODED = {f"{COMPILED}-{name}": name for name in FORMATS if name != "bits" and not name.startswith("windows")}
_PLAIN = (NONE, CHECKPOINT, COMPILED, BLOCKS, *CODED)

NO_BLOCKS = "the model has no blocks: a block is an element of a ModuleList or Sequential that consists of modules"

_Optimizer = Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]
#: Optimizers by name; ``foreach`` is torch's default on a GPU, with a temporary for every parameter.
OPTIMIZERS: dict[str, _Optimizer | None] = {
    "none": None,
    "sgd": partial(torch.optim.SGD, lr=1e-3),
    "momentum": partial(torch.optim.SGD, lr=1e-3, momentum=0.9),
    "adamw": partial(torch.optim.AdamW, fused=True),
    "adamw-foreach": partial(torch.optim.AdamW, foreach=True),
}


@dataclass(frozen=True)
class Predicted:
    """A training step's memory in bytes."""

    policy: str
    batch: int | None
    state: int  #: parameters, buffers, states of the optimizer, the batch
    kept: int  #: between forward and backward, without the state
    peak: int  #: at the peak, the state included
    place: StoragePlace  #: operation at the peak

    @property
    def step(self) -> int:
        """Return bytes at the peak without the state."""
        return self.peak - self.state

    def to_data(self) -> dict[str, Any]:
        """Return plain values, as for JSON."""
        return asdict(self)


def check_policy(name: str, family: str, budget: float = 1.0) -> None:
    """Raise UserError for a policy whose bytes are not known, or not with this budget."""
    if name not in _PLAIN and (name not in POLICY_NAMES or _ratios(name) is None):
        usual = [one for one in POLICY_NAMES if one != NONE and _ratios(one) is not None]
        raise UserError(unknown("policy", name, (*_PLAIN, *usual)))
    if name in POLICY_NAMES and name != NONE and not family:
        raise UserError(
            f"how much policy {name!r} saves depends on the values: name the kind of network with --family, "
            f"{', '.join(families())}"
        )
    if name in CODED and budget != 1:
        raise UserError(
            f"policy {name!r} has no --budget here: leave it out, or measure a step of actcodec.compiled(..., budget=...), "
            "which chooses by the values"
        )


def predict(
    subject: Subject,
    policy: str = NONE,
    count: int | None = None,
    optimizer: str = "none",
    budget: float = 1.0,
    *,
    on_cpu: bool = False,
) -> Predicted:
    """Predict one step.

    Parameters
    ----------
    subject
        The model and its training; unchanged afterwards, without gradients.
    policy
        ``none``, ``checkpoint`` (around each block), ``compiled`` (model and loss in one graph), ``compiled-blocks`` (each
        block in a graph, the rest operation by operation), ``compiled-FORMAT`` (``actcodec.compiled`` with a format, and a loss
        outside the graph), or the name of a policy of the hooks, whose ratio is the one that
        benchmarks/families.py measured for the family.
    count
        Samples in the batch; None is the subject's own batch.
    optimizer
        Name in :data:`OPTIMIZERS`. With an optimizer its states exist at the start, and the step ends with its update.
    budget
        torch's ``activation_memory_budget`` for ``compiled`` and ``compiled-blocks``, 0 to 1.
    on_cpu
        True to count the workspace of oneDNN's convolutions.

    UserError for unknown names, and for a step that reads values.
    """
    check_policy(policy, subject.family, budget)
    try:
        if not subject.entered:  # allocates buffers that libraries and data sets keep from their first call on
            subject.loss(*subject.data(count))
        if policy == COMPILED:
            return _compiled(subject, count, optimizer, budget, on_cpu)
        return _eager(subject, policy, count, optimizer, budget, on_cpu)
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise UserError(f"the step reads values, and there are none ({error.func}): leave out what depends on them") from None
    except RuntimeError as error:  # operations of torch that take no tensors without values
        raise UserError(f"the step does not run without values: {error}") from error
    finally:
        subject.model.zero_grad(set_to_none=True)


def blocks(model: nn.Module) -> list[nn.Module]:
    """Return the outermost elements of lists and sequences of modules that consist of modules: layers, blocks of stages."""
    if not isinstance(model, nn.ModuleList | nn.Sequential):
        return [block for child in model.children() for block in blocks(child)]
    found: list[nn.Module] = []
    for one in model:
        inner = blocks(one) if isinstance(one, nn.ModuleList | nn.Sequential) else []
        whole = not isinstance(one, nn.ModuleList) and any(True for _ in one.children())
        found += inner or ([one] if whole else [])
    return found


# Code that runs operation by operation


def _eager(subject: Subject, policy: str, count: int | None, optimizer: str, budget: float, on_cpu: bool) -> Predicted:
    model, make = subject.model, OPTIMIZERS[optimizer]
    storages = LiveStorages(model, on_cpu=on_cpu)
    storages.given(*model.parameters(), *model.buffers())
    with subject.within(), _means(policy, subject, budget, on_cpu) as hooks, storages, storages.names_of_modules():
        data = subject.data(count)
        update = None if make is None else _updated(make, model)
        start = storages.live
        storages.phase = FORWARD
        storages.restart()
        with hooks():
            loss = checked_loss(subject.loss(*data))
        kept = storages.live - start
        storages.phase = BACKWARD
        loss.backward()
        del loss
        if update is not None:
            storages.phase = UPDATE
            update.step()
        before = _bytes([*model.parameters(), *model.buffers()])
        if subject.entered:  # an existing batch; data of the zoo count as those of a data set
            before += storages.others
    return Predicted(policy, count, before + start, kept, before + storages.peak, storages.place)


@contextmanager
def _means(policy: str, subject: Subject, budget: float, on_cpu: bool) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
    """Prepare the model; yields a function that makes the context of the forward."""
    if policy in (CHECKPOINT, BLOCKS, *CODED):
        chosen = [subject.model] if policy in CODED else blocks(subject.model)
        if not chosen:
            raise UserError(NO_BLOCKS)
        choose = partial(_coded, CODED[policy]) if policy in CODED else None
        compiled = CompiledBlocks(subject.mode, budget if choose is None else 1.0, choose, on_cpu=on_cpu and choose is not None)
        for one in chosen:
            again = partial(checkpoint, one.forward, use_reentrant=False, preserve_rng_state=False)
            one.forward = again if policy == CHECKPOINT else partial(compiled.call, one, one.forward)
        try:
            yield nullcontext
        finally:
            for one in chosen:
                del one.forward
    elif policy == NONE:
        yield nullcontext
    else:
        ratios = _ratios(policy)
        assert ratios is not None, "the name was checked"
        yield partial(_smaller, subject.model, ratios[subject.family])


def _coded(name: str, saved: Sequence[Saved]) -> list[Action]:
    return [action_of(one) for one in Choices(name).of(saved)]


def _ratios(policy: str) -> dict[str, float] | None:
    """Return the measured ratio of all saved tensors except weights and buffers, by family; None if it was not measured."""
    found = [one for one in measured() if one.policy.name == policy and not one.policy.options]
    return {name: on.ratio for name, on in found[0].families.items()} if found else None


def _smaller(model: nn.Module, ratio: float) -> saved_tensors_hooks:
    """Return hooks that keep a part of the bytes of each storage except those of weights and buffers."""
    own = {tensor.untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, weakref.ref[_Part]] = {}

    def pack(x: Tensor) -> Tensor | _View:
        storage = x.untyped_storage()
        if storage._cdata in own:
            return x
        there = kept.get(storage._cdata)
        part = None if there is None else there()
        if part is None:
            part = _Part(x.new_empty(int(storage.nbytes() / ratio), dtype=torch.uint8))
            kept[storage._cdata] = weakref.ref(part)
            weakref.finalize(storage, kept.pop, storage._cdata, None).atexit = False
        return _View(part, x)

    def unpack(held: Any) -> Tensor:
        return held if isinstance(held, Tensor) else held.tensor()

    return saved_tensors_hooks(pack, unpack)


class _Part:
    """Bytes kept in place of a storage."""

    def __init__(self, payload: Tensor) -> None:
        self.payload = payload


class _View:
    """One saved tensor of a storage that is kept in fewer bytes."""

    def __init__(self, part: _Part, x: Tensor) -> None:
        self._part, self._size, self._dtype = part, tuple(x.shape), x.dtype

    def tensor(self) -> Tensor:
        """Make a tensor of the same layout."""
        return self._part.payload.new_empty(self._size, dtype=self._dtype)


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum({one.untyped_storage()._cdata: one.untyped_storage().nbytes() for one in tensors}.values())


# Compiled code


def _compiled(subject: Subject, count: int | None, optimizer: str, budget: float, on_cpu: bool) -> Predicted:
    from actcodec.graph.timeline import peak_of
    from actcodec.graph.traced import traced

    model, make = subject.model, OPTIMIZERS[optimizer]
    with subject.within():
        data = subject.data(count)
        forward, backward = traced(model, lambda *given: checked_loss(subject.loss(*given)), data, subject.mode, budget=budget)
        timeline = peak_of(forward.graph, backward.graph, workspace=on_cpu)
        states, update = (0, 0) if make is None else _update(make, model)
    there = [*model.parameters(), *model.buffers(), *(one for one in data if isinstance(one, Tensor))]
    if subject.entered:  # what the step reads and is not given, an existing batch
        there += [*forward.buffers(), *backward.buffers()]
    state = _bytes(there) + states
    worst, graph = timeline.worst, forward.graph if timeline.worst.phase == FORWARD else backward.graph
    place = StoragePlace(worst.phase, module_of(next(node for node in graph.nodes if node.name == worst.node)), worst.node)
    if update > timeline.peak:
        return Predicted(COMPILED, count, state, timeline.kept, state + update, StoragePlace(UPDATE, "", "step"))
    return Predicted(COMPILED, count, state, timeline.kept, state + timeline.peak, place)


def module_of(node: fx.Node) -> str:
    """Return the name of the module in which a node's operation was traced; empty if none is known."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return str(list(stack.values())[-1][0]) if stack else ""


def _update(make: _Optimizer, model: nn.Module) -> tuple[int, int]:
    """Return bytes of an optimizer's states, and of gradients and temporaries at the worst moment of its update."""
    storages = LiveStorages(model)
    with storages:
        update = _updated(make, model)
        states = storages.live
        _fill(model)
        storages.restart()
        update.step()
    return states, storages.peak - states


def _updated(make: _Optimizer, model: nn.Module) -> torch.optim.Optimizer:
    """Return an optimizer that has its states, from a first update."""
    update = make([one for one in model.parameters() if one.requires_grad])
    _fill(model)
    update.step()
    update.zero_grad(set_to_none=True)
    return update


def _fill(model: nn.Module) -> None:
    for one in model.parameters():
        if one.requires_grad:
            one.grad = torch.empty_like(one)
