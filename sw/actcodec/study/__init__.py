"""Studies of training with compressed activations: checks of a policy, diagnoses, calibration, runs, data sets, networks."""

from actcodec.study.calibration import calibrate, settle
from actcodec.study.check import Check, PolicyCheck, check
from actcodec.study.diagnosis import Diagnosis, TensorDiagnosis, diagnose
from actcodec.study.frequency_analysis import FrequencyAnalysis, LayerFrequencies

__all__ = [
    "Check",
    "Diagnosis",
    "FrequencyAnalysis",
    "LayerFrequencies",
    "PolicyCheck",
    "TensorDiagnosis",
    "calibrate",
    "check",
    "diagnose",
    "settle",
]
