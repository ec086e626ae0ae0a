"""DQT optimisation (JPEG-ACT): quantisation tables that fit activations, compared with the known ones."""

from actcodec.study.dqt.coefficients import coefficients, histogram
from actcodec.study.dqt.curves import Curves, Measure
from actcodec.study.dqt.measure import Bench, Point
from actcodec.study.dqt.optimizers import Sgd, search
from actcodec.study.dqt.quantizer import Quantizer
from actcodec.study.dqt.study import Settings, Study, study

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
