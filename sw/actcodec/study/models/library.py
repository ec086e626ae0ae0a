"""Libraries of models and trainers, if they are installed: torchvision, timm, transformers, Lightning."""

from __future__ import annotations

import importlib.metadata
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import torch
from cdu_tools.distribution import adding
from cdu_tools.errors import MissingToolError

#: Compiled operators for detection; torchvision cannot be imported unless their names are declared.
_OPERATORS = ("nms", "qnms")
#: The command that adds each library.
_ADDING = {
    "torchvision": "take it from the package index that torch came from",
    "timm": "`pip install timm` adds it, once torchvision is here",
    "transformers": f"{adding('models')} adds it",
    "lightning": f"{adding('frameworks')} adds it",
    "pytorch_lightning": f"{adding('frameworks')} adds it",
}


def torchvision() -> ModuleType:
    """Import the library; its operators for detection, which no network here has, are only declared if they do not load.

    The package index has torchvision for CUDA, whose compiled operators do not load beside torch for the CPU. MissingToolError
    if it is not installed.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise MissingToolError(f"needs torchvision: {_ADDING['torchvision']}")
    for library in Path(spec.origin).parent.glob("_C*.so"):
        with suppress(OSError):
            torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    for name in _OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return import_module("torchvision")


def timm() -> ModuleType:
    """Import the library, beside :func:`torchvision`, which it imports. MissingToolError if one of them is not installed."""
    return _beside_torchvision("timm")


def transformers() -> ModuleType:
    """Import the library, which imports torchvision if that is installed. MissingToolError if it is not installed itself."""
    return _beside_torchvision("transformers")


def _beside_torchvision(name: str) -> ModuleType:
    if find_spec(name) is None:
        raise MissingToolError(f"needs {name}: {_ADDING[name]}")
    if name == "timm" or find_spec("torchvision") is not None:
        torchvision()
    return import_module(name)


def version(name: str) -> str:
    """Return the version of torchvision, timm, transformers or Lightning, as a program without this module would import it.

    Raises MissingToolError, with a remedy, if the library is not installed, or does not import because the installed
    torchvision is of another build than torch; the others import it.
    """
    if find_spec(name) is None:
        raise MissingToolError(f"{_ADDING[name]} (optional)")
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
