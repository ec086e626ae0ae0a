"""DQT optimisation (JPEG-ACT): quantisation tables that fit activations, and what they are worth beside the known ones."""

from actcodec.dqt.coefficients import coefficients, histogram
from actcodec.dqt.curves import Curves, Measure
from actcodec.dqt.measure import Bench, Point
from actcodec.dqt.optimizers import Sgd, search
from actcodec.dqt.quantizer import Quantizer
from actcodec.dqt.study import Settings, Study, study

__all__ = [
    "Bench",
    "Curves",
    "Measure",
    "Point",
    "Quantizer",
    "Settings",
    "Sgd",
    "Study",
    "coefficients",
    "histogram",
    "search",
    "study",
]
