"""The zoo: models of other libraries by family, with random weights, on real images and text; a step takes under a second."""

from actcodec.study.zoo import of_timm, of_torch, of_torchvision, of_transformers
from actcodec.study.zoo.foreign import FAMILIES, Foreign

#: All models, by name.
ZOO = {model.name: model for library in (of_torchvision, of_timm, of_transformers, of_torch) for model in library.MODELS}

__all__ = ["FAMILIES", "ZOO", "Foreign"]
