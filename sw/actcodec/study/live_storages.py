"""Count live bytes of tensors from operation to operation, with or without values, and find the operation at the peak.

torch has a tracker of memory too (``torch.distributed._tools.mem_tracker``). It does not report the operation at the peak, it
refuses a second step of the same model, as needed with states of an optimizer, and it copies its account of every module
at every operation. Peaks of the two are the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from actcodec.graph.timeline import workspace_of_small_maps
from actcodec.graph.torch_private import autograd_node, next_autograd_number

#: Phases of a training step.
FORWARD, BACKWARD, UPDATE = "forward", "backward", "optimizer"


@dataclass(frozen=True)
class StoragePlace:
    """The position of an operation in a step."""

    phase: str  #: ``forward``, ``backward`` or ``optimizer``
    module: str  #: name of the innermost module; in the backward that of the differentiated operation; empty outside
    operation: str  #: torch's name; in the backward that of the graph node


class LiveStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Count, while entered, the bytes of storages that operations make, until nothing refers to them any more.

    Storages that operations read but did not make existed before; they count in :attr:`others`, or not at all if :meth:`given`.

    Parameters
    ----------
    model
        Model whose modules are named.
    on_cpu
        True to add the workspace of oneDNN's convolutions, which rearranges plain tensors: as measured, the input or the
        output, or :func:`workspace_of_small_maps`. Depthwise convolutions may take more.
    """

    def __init__(self, model: nn.Module, *, on_cpu: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0  #: bytes
        self.others = 0  #: bytes that existed before
        self.peak = 0  #: bytes, since the last :meth:`restart`
        self.place = StoragePlace("", "", "")  #: position of the peak
        self.phase = FORWARD
        self._on_cpu = on_cpu
        self._names = {id(module): name for name, module in model.named_modules()}
        self._sizes: dict[int, int | None] = {}  #: by storage; None for storages that existed before
        self._running: list[str] = []
        self._modules: dict[int, str] = {}

    def given(self, *tensors: Tensor) -> None:
        """Declare tensors that existed before."""
        others = self.others
        for tensor in tensors:
            self._follow(tensor, counts=False)
        self.others = others

    def restart(self) -> None:
        """Begin a new peak."""
        self.peak, self.place = self.live, StoragePlace("", "", "")

    @contextmanager
    def names_of_modules(self) -> Iterator[None]:
        """Follow the running module."""
        before = register_module_forward_pre_hook(self._enter_module)
        after = register_module_forward_hook(self._leave_module, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Implement TorchDispatchMode."""
        for one in tree_leaves((args, kwargs)):
            if isinstance(one, Tensor):
                self._follow(one, counts=False)
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, Tensor):
                self._follow(one, counts=True)
        if self.phase == FORWARD and torch.is_grad_enabled():
            # The graph's node of an operation is made before the operation runs.
            self._modules.setdefault(next_autograd_number() - 1, self._module)
        now = self.live + (_workspace(func, args, result) if self._on_cpu else 0)
        if now > self.peak:
            self.peak, self.place = now, self._here(func)
        return result

    def _follow(self, tensor: Tensor, counts: bool) -> None:
        if tensor.layout != torch.strided:
            return
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._sizes:
            self._sizes[key] = 0 if counts else None
            self.others += 0 if counts else size
            weakref.finalize(storage, self._free, key).atexit = False
        if (before := self._sizes[key]) is not None:
            self.live += size - before
            self._sizes[key] = size

    def _free(self, key: int) -> None:
        self.live -= self._sizes.pop(key) or 0

    @property
    def _module(self) -> str:
        """Return the innermost running module."""
        return self._running[-1] if self._running else ""

    def _here(self, func: Any) -> StoragePlace:
        name = str(getattr(func, "_schema", func).name).removeprefix("aten::")
        module = self._module
        node = autograd_node()
        if self.phase == BACKWARD and node is not None and not module:
            return StoragePlace(self.phase, self._modules.get(node._sequence_nr(), ""), node.name())
        return StoragePlace(self.phase, module, name)

    def _enter_module(self, module: nn.Module, inputs: Any) -> None:
        del inputs
        self._running.append(self._names.get(id(module), self._module))

    def _leave_module(self, module: nn.Module, inputs: Any, output: Any) -> None:
        del module, inputs, output
        self._running.pop()


def _workspace(func: Any, args: Any, result: Any) -> int:
    """Return bytes that oneDNN takes beside the results of an operation."""
    if func is torch.ops.aten.convolution.default:
        return int(max(args[0].nbytes + args[1].nbytes, result.nbytes))
    if func is torch.ops.aten.convolution_backward.default:
        return max(int(args[0].nbytes + args[1].nbytes), int(args[2].nbytes), workspace_of_small_maps(args[1], args[2]))
    return 0
