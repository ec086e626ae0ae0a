"""Models of other libraries, with the loss of a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor, nn

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
class Loss:
    """A loss on batches of one data set, called with a model and the number of a batch, from 0.

    Parameters
    ----------
    compute
        ``compute(model, number, count)``.
    count
        Samples in a batch.
    """

    compute: Callable[[nn.Module, int, int], Tensor]
    count: int

    def __call__(self, model: nn.Module, number: int) -> Tensor:
        """Return the loss of the batch of that number."""
        return self.compute(model, number, self.count)

    def of(self, count: int) -> Loss:
        """Return the same loss with ``count`` samples in a batch."""
        return replace(self, count=count)


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
