"""torchvision, where it is installed."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import torch
from cdu_tools.errors import MissingToolError

#: Compiled operators for detection without whose names torchvision cannot be imported.
_OPERATORS = ("nms", "qnms")


def torchvision() -> ModuleType:
    """The library; its operators for detection, which no network here has, are only declared where they do not load.

    The package index has torchvision for CUDA. Beside torch for the CPU its compiled operators do not load. MissingToolError
    where it is not installed.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise MissingToolError("needs torchvision, from the index that torch came from")
    for library in Path(spec.origin).parent.glob("_C*.so"):
        with suppress(OSError):
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    for name in _OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return import_module("torchvision")
