"""Models of other libraries, with the loss of a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from actcodec.study.zoo.losses import Loss

#: Kinds of networks for which policies are recommended, with their typical parts.
FAMILIES = {
    "CNN": "convolutions with batch normalisation and ReLU",
    "MobileNet": "convolutions of single channels, gates, activations that are no ReLU",
    "ConvNeXt": "convolutions without batch normalisation, mixtures of tokens",
    "ViT": "attention over pieces of an image, beside a text too",
    "GPT/BERT": "attention or a state space over tokens, sounds",
    "U-Net": "maps at the end as large as the image",
    "RNN": "recurrent layers",
}


@dataclass(frozen=True)
class Foreign:
    """A model with random weights, narrow and shallow where its library allows it.

    Parameters
    ----------
    name
        Library, and name within it.
    family
        Name in :data:`FAMILIES`.
    build
        Makes the model, in training mode, by torch's random numbers. MissingToolError if the library is not installed.
    loss
        Loss of a batch, a tensor of one value.
    """

    name: str
    family: str
    build: Callable[[], nn.Module]
    loss: Loss

    @property
    def library(self) -> str:
        """The package that has to be installed."""
        return self.name.partition(".")[0]
