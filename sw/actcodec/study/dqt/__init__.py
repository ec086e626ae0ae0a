"""DQT optimisation (JPEG-ACT): quantisation tables that fit activations, compared with the known ones."""

from actcodec.study.dqt.coefficients import coefficients, histogram
from actcodec.study.dqt.curves import Curves, Measure
from actcodec.study.dqt.measure import RateBench, RatePoint
from actcodec.study.dqt.optimizers import Sgd, search
from actcodec.study.dqt.quantizer import TableQuantizer
from actcodec.study.dqt.study import DqtSettings, DqtStudy, study

__all__ = [
    "Curves",
    "DqtSettings",
    "DqtStudy",
    "Measure",
    "RateBench",
    "RatePoint",
    "Sgd",
    "TableQuantizer",
    "coefficients",
    "histogram",
    "search",
    "study",
]
