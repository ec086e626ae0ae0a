"""The zoo: models of other libraries by family, with random weights, on real images and text; a step takes under a second."""

from cdu_zoo import of_timm, of_torch, of_torchvision, of_transformers

#: All models, by name.
ZOO = {model.name: model for library in (of_torchvision, of_timm, of_transformers, of_torch) for model in library.MODELS}

__all__ = ["ZOO"]
