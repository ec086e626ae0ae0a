"""Libraries of models, and what trains them, where they are installed: torchvision, transformers, Lightning."""

from __future__ import annotations

import importlib.metadata
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import torch
from cdu_tools.errors import MissingToolError

#: Compiled operators for detection without whose names torchvision cannot be imported.
_OPERATORS = ("nms", "qnms")
#: Extras of this project that libraries are in.
_EXTRAS = {"transformers": "models", "lightning": "frameworks", "pytorch_lightning": "frameworks"}


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


def version(name: str) -> str:
    """Version of torchvision, transformers or Lightning, as it would be used: without this module's help.

    Raises MissingToolError, with what to do, where it is not installed, or does not import because the torchvision that is
    installed is of another build than torch; the others import it for every model, or for every metric.
    """
    if find_spec(name) is None:
        extra = _EXTRAS.get(name)
        add = f"`pip install 'cdu[{extra}]'` adds it" if extra else "from the package index that torch came from"
        raise MissingToolError(f"{add} (optional)")
    if find_spec("torchvision") is not None:
        try:
            import_module("torchvision")
        except (RuntimeError, ImportError, OSError) as error:
            who = "it" if name == "torchvision" else f"{name} finds torchvision, which"
            raise MissingToolError(
                f"{who} does not import beside torch {torch.__version__} ({error}): `pip uninstall torchvision`, or install "
                "the build of the package index that torch came from"
            ) from None
    return importlib.metadata.version(name)
