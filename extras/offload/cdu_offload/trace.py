"""Describe a network by one real training step on torch's meta device, which has shapes and no values.

Every ATen operation of the forward and the backward pass is seen with its floating-point operations (torch's own formulas,
``torch.utils.flop_counter``) and the bytes of its arguments and results; saved-tensor hooks tell which operation saves an
activation and which one reads it. The same code as in training decides which tensors are activations and how they are kept:
:func:`actcodec.policies.policy.jpeg_act_policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from actcodec.policies.policy import SavedTensor
from actcodec.policies.tables.modes import jpeg_act_policy
from actcodec.saved.operations import OperationTracker, is_parameter, leaf_of, producer, tensors_in
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from cdu_offload.network import NORM_INPUT, NORM_RESULT, VALUE_BYTES, LayerWork, OffloadActivation, OffloadNetwork

#: Kind of an activation by its codec in JPEG-ACT's table.
_KIND_OF_CODEC = {"jpeg-act": "dense", "brc": "signs", "sfpr+zvc": "sparse", "sfpr": "unfit"}
#: SGD with momentum reads weight, gradient and momentum, and writes weight and momentum.
_OPTIMIZER_PASSES = 5


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Record every kernel; reports of the hooks belong to the kernel that is about to run, or has just run."""

    def __init__(self, tracker: OperationTracker) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.works: list[LayerWork] = []
        self.unpacked: list[int] = []
        self._tracker = tracker
        self._function: object = None
        self._results: set[int] = set()

    def made_by_current(self, storage: int) -> bool:
        """Return whether a kernel of the torch function in progress has this storage as a result."""
        return self._function is self._tracker.current and storage in self._results

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        is_view = any(value.alias_info is not None and not value.alias_info.is_write for value in func._schema.returns)
        packet = func._overloadpacket
        if is_view or packet.__name__.startswith("empty"):
            return result
        flops = flop_registry[packet](*args, **kwargs, out_val=result) if packet in flop_registry else 0
        results = list(tensors_in(result if isinstance(result, (list, tuple)) else (result,)))
        moved = _distinct_bytes(tensors_in((*args, *kwargs.values()))) + _distinct_bytes(results)
        self.works.append(LayerWork(packet.__name__, int(flops), moved, needs=tuple(dict.fromkeys(self.unpacked))))
        self.unpacked = []
        if self._function is not self._tracker.current:
            self._function, self._results = self._tracker.current, set()
        self._results |= {_storage(tensor) for tensor in results}
        return result


class _Saves:
    """The saved-tensor hooks: find the activations, and the last forward kernel that uses each."""

    def __init__(self, model: nn.Module, tracker: OperationTracker, recorder: _Recorder) -> None:
        self._tracker, self._recorder = tracker, recorder
        self._fixed = {_storage(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self._policy = jpeg_act_policy()
        self._number: dict[int, int] = {}
        #: Kept alive so that no other tensor gets the storage of a recorded one.
        self._held: list[Tensor] = []
        self.activations: list[OffloadActivation] = []
        self.last: dict[int, tuple[int, bool]] = {}  #: number -> (forward kernel, True if that kernel produces it)

    def pack(self, x: Tensor) -> tuple[Tensor, int | None]:
        """Return the tensor, with its number if it is an activation whose values this consumer needs."""
        operation = self._tracker.current
        assert operation is not None
        kind = self._kind(x, operation.name)
        if kind is None:
            return x, None
        key = _storage(x)
        if key not in self._number:
            self._number[key] = len(self.activations)
            self._held.append(x)
            self.activations.append(OffloadActivation(producer(x), kind, tuple(x.shape)))
        number = self._number[key]
        if x.grad_fn is not None:
            # The producer is not known while it saves its own result.
            self._held[number] = x
        found = self.activations[number]
        if found.kind == "signs" and kind != "signs":
            # One copy serves all consumers; values replace signs.
            self.activations[number] = replace(found, kind=kind)
        done = len(self._recorder.works)
        makes = self._recorder.made_by_current(key)
        self.last[number] = (done - 1 if makes else done, makes)
        return x, number

    def unpack(self, saved: tuple[Tensor, int | None]) -> Tensor:
        """Return the tensor; the next kernel is the one that needs it."""
        if saved[1] is not None:
            self._recorder.unpacked.append(saved[1])
        return saved[0]

    def paired(self) -> tuple[OffloadActivation, ...]:
        """Return the activations, with marks on batch normalisations whose input and result (after a ReLU) are both kept."""
        found, makers = (
            list(self.activations),
            {x.grad_fn: number for number, x in enumerate(self._held) if x.grad_fn is not None},
        )
        for relu, result in makers.items():
            norm = relu.next_functions[0][0] if "Relu" in relu.name() else None
            source = norm.next_functions[0][0] if norm is not None and "BatchNorm" in norm.name() else None
            if source in makers and found[makers[source]].kind == "dense":
                found[makers[source]] = replace(found[makers[source]], pair=NORM_INPUT)
                found[result] = replace(found[result], pair=NORM_RESULT)
        return tuple(found)

    def _kind(self, x: Tensor, consumer: str) -> str | None:
        """Return one of KINDS; None for parameters, statistics, masks, losses, and inputs of pools (only shapes matter)."""
        fixed = is_parameter(x) or _storage(x) in self._fixed or is_parameter(leaf_of(x))
        mask = consumer == "dropout" and not x.requires_grad
        if fixed or mask or x.ndim < 2 or not x.is_floating_point() or consumer == "pool":
            return None
        codec = self._policy.choose(SavedTensor(producer(x), consumer, tuple(x.shape), x.dtype))
        return None if codec is None else _KIND_OF_CODEC[codec.name]


def trace(
    name: str, title: str, family: str, build: Callable[[], nn.Module], shape: tuple[int, ...], classes: int | None
) -> OffloadNetwork:
    """Describe a training step of a model on inputs of ``shape`` (N, C, H, W), float32.

    The loss is cross-entropy over ``classes``, or, for None, the mean square error to an image of the input's shape.
    """
    with torch.device("meta"):
        model = build()
        inputs = torch.empty(shape)
        target = torch.empty(shape) if classes is None else torch.empty(shape[0], dtype=torch.long)
    loss_of = nn.functional.mse_loss if classes is None else nn.functional.cross_entropy
    tracker = OperationTracker()
    recorder = _Recorder(tracker)
    saves = _Saves(model, tracker, recorder)
    with saved_tensors_hooks(saves.pack, saves.unpack), recorder:
        with tracker:
            loss = loss_of(model(inputs), target)
        forward, recorder.works = recorder.works, []
        torch.autograd.backward(loss)
    weights = sum(parameter.numel() for parameter in model.parameters())
    update = LayerWork("optimizer", 0, _OPTIMIZER_PASSES * VALUE_BYTES * weights)
    placed = [
        replace(
            work,
            releases=tuple(number for number, place in saves.last.items() if place == (index, False)),
            makes=tuple(number for number, place in saves.last.items() if place == (index, True)),
        )
        for index, work in enumerate(forward)
    ]
    return OffloadNetwork(name, title, shape[0], family, saves.paired(), tuple(placed), (*recorder.works, update))


def _storage(x: Tensor) -> int:
    return int(x.untyped_storage()._cdata)


def _distinct_bytes(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of some tensors; shared memory, and values repeated by expansion, count once."""
    sizes = {_storage(x): min(x.untyped_storage().nbytes(), x.numel() * x.element_size()) for x in tensors}
    return sum(sizes.values())
