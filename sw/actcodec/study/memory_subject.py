"""Subjects of a prediction of memory: a model without weights, the data of a batch, and their loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from actcodec.graph.torch_private import FakeTensorMode
from actcodec.study.foreign import Foreign
from actcodec.study.step_script import names_of

#: Formats of parameters and data, by name.
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Subject:
    """A model on fake tensors, and its training.

    Parameters
    ----------
    model
        The model; its parameters and buffers have shapes and no values.
    data
        ``data(count)`` returns the arguments of ``loss`` for a batch of ``count`` samples; None is the existing batch.
    loss
        Computes a tensor of one value.
    family
        Kind of network, a name in :data:`~actcodec.study.foreign.FAMILIES`; empty if unknown.
    mode
        Mode of the fake tensors.
    entered
        True if data are made within the mode; data of the zoo are real, and small.
    dtype
        Default dtype of tensors made in the step.
    own
        Samples in the existing batch.
    varies
        True if batches of other sizes can be made.
    """

    name: str
    model: nn.Module
    data: Callable[[int | None], tuple[Any, ...]]
    loss: Callable[..., Tensor]
    family: str
    mode: FakeTensorMode
    entered: bool
    dtype: torch.dtype = torch.float32
    own: int = 1
    varies: bool = True

    def count(self, asked: int | None) -> int:
        """Return the number of samples in a batch for which ``asked`` samples, or None, were requested."""
        return self.own if asked is None else asked

    @contextmanager
    def within(self) -> Iterator[None]:
        """Provide the context in which a step of the model is taken."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        try:
            with self.mode if self.entered else nullcontext():
                yield
        finally:
            torch.set_default_dtype(before)


def of_zoo(foreign: Foreign, dtype: torch.dtype = torch.float32) -> Subject:
    """Return a model of the zoo with real batches of its own data, built with values where necessary."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with mode:
            model = foreign.build()
    except RuntimeError:  # some operation has no form without values
        model = foreign.build()
    without_values(model, mode, dtype)
    if dtype != torch.float32:
        model.register_forward_pre_hook(_casting(dtype), with_kwargs=True)

    def loss(count: int | None) -> Tensor:
        return (foreign.loss if count is None else foreign.loss.of(count))(model, 0)

    return Subject(foreign.name, model, lambda count: (count,), loss, foreign.family, mode, False, own=foreign.loss.count)


def of_script(script: Path, family: str = "", dtype: torch.dtype = torch.float32) -> Subject:
    """Return a model of a user's script, which runs without values.

    The script defines ``model`` and ``step()``, which returns the loss, as for ``cdu check``; for batches of other sizes it
    defines ``batch(count)``, whose result, a tuple, is passed to ``step``. UserError for a script that does not.
    """
    mode, before = FakeTensorMode(allow_non_fake_inputs=True), torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with mode:
            names = names_of(script, " without values")
    finally:
        torch.set_default_dtype(before)
    batch = names.get("batch")

    def data(count: int | None) -> tuple[Any, ...]:
        if batch is None and count is not None:
            raise UserError(f"{script} has one batch only: define batch(count), a tuple of tensors, and let step take them")
        given = () if batch is None else batch(1 if count is None else count)
        if not isinstance(given, (tuple, list)):
            raise UserError(f"batch(count) of {script} returns {type(given).__name__}: return a tuple of tensors")
        return tuple(given)

    return Subject(script.stem, names["model"], data, names["step"], family, mode, True, dtype, varies=batch is not None)


def without_values(model: nn.Module, mode: FakeTensorMode, dtype: torch.dtype | None = None) -> None:
    """Replace a model's parameters and buffers by fake tensors, in another dtype if one is given.

    Shared tensors remain shared.
    """
    seen: dict[int, Tensor] = {}
    for module in model.modules():
        for group in (module._parameters, module._buffers):
            for name, tensor in group.items():
                if tensor is None:
                    continue
                if id(tensor) not in seen:
                    with mode:
                        fake: Tensor = mode.from_tensor(tensor.detach())
                        fake = fake.to(dtype) if dtype is not None and fake.is_floating_point() else fake
                    seen[id(tensor)] = nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake
                group[name] = seen[id(tensor)]  # type: ignore[assignment]


def _casting(dtype: torch.dtype) -> Callable[..., Any]:
    def cast(module: nn.Module, args: Any, kwargs: Any) -> Any:
        del module
        return tree_map_only(Tensor, lambda x: x.to(dtype) if x.is_floating_point() else x, (args, kwargs))

    return cast
