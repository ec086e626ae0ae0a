"""Losses for training models of other libraries, on batches of :mod:`~actcodec.study.data.batches`."""

from __future__ import annotations

from typing import Any

from actcodec.study.data.batches import images, shades, texts
from actcodec.study.foreign import Loss
from torch import Tensor, nn
from torch.nn import functional


def of_images(count: int = 8, side: int = 64) -> Loss:
    """Return the loss of classifying images by their photograph and their part of it."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        pictures, classes = images(number, count, side)
        return functional.cross_entropy(_logits(model(pictures)), classes)

    return Loss(loss, count)


def of_pixels(count: int = 4, side: int = 64) -> Loss:
    """Return the loss of predicting the brightness of each pixel of an image."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        pictures, _ = images(number, count, side)
        logits = _logits(model(pictures))
        return functional.cross_entropy(functional.interpolate(logits, (side, side), mode="bilinear"), shades(pictures))

    return Loss(loss, count)


def of_next_letters(count: int = 4, length: int = 48) -> Loss:
    """Return the loss of predicting the next letter, for models with logits (count, length, letters)."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        letters, _ = texts(number, count, length + 1)
        return functional.cross_entropy(_logits(model(letters[:, :-1])).flatten(0, 1), letters[:, 1:].flatten())

    return Loss(loss, count)


def of_hidden_letters(count: int = 4, length: int = 48) -> Loss:
    """Return the loss of predicting every seventh letter, which the model sees as number 0."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        letters, _ = texts(number, count, length)
        seen = letters.clone()
        seen[:, ::7] = 0
        return functional.cross_entropy(_logits(model(seen))[:, ::7].flatten(0, 1), letters[:, ::7].flatten())

    return Loss(loss, count)


def of_subjects(count: int = 8, length: int = 48) -> Loss:
    """Return the loss of classifying a piece of text by its subject."""

    def loss(model: nn.Module, number: int, count: int) -> Tensor:
        letters, subjects = texts(number, count, length)
        return functional.cross_entropy(_logits(model(letters)), subjects)

    return Loss(loss, count)


def _logits(output: Any) -> Tensor:
    """Return the logits among a library's results: a tensor, a dictionary with ``out``, or an object with ``logits``."""
    if isinstance(output, dict) and "out" in output:
        output = output["out"]
    found = output if isinstance(output, Tensor) else output.logits
    assert isinstance(found, Tensor), "models return logits"
    return found
