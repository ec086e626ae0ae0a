"""DQT optimisation (JPEG-ACT): quantisation tables that fit activations, compared with the known ones."""

from cdu_dqt.coefficients import coefficients, histogram
from cdu_dqt.curves import Curves, Measure
from cdu_dqt.measure import RateBench, RatePoint
from cdu_dqt.optimizers import Sgd, search
from cdu_dqt.quantizer import TableQuantizer
from cdu_dqt.study import DqtSettings, DqtStudy, study

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
