"""Small reference networks for comparing codecs."""

from actcodec.models.resnet import ResNet
from actcodec.models.vdsr import Vdsr

__all__ = ["ResNet", "Vdsr"]
