"""Small reference networks for comparing codecs."""

from actcodec.models.resnet import ResNet
from actcodec.models.vdsr import Vdsr
from actcodec.models.vgg import Vgg
from actcodec.models.vit import VisionTransformer
from actcodec.models.wide_resnet import WideResNet

__all__ = ["ResNet", "Vdsr", "Vgg", "VisionTransformer", "WideResNet"]
