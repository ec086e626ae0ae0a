"""Training with compressed activations: saved-tensor hooks, policies, statistics, comparisons of codecs."""

from actcodec.training.auto import AutoPolicy
from actcodec.training.blpa_groups import BlpaPolicy, blpa_policy
from actcodec.training.bound_listener import BoundOptions
from actcodec.training.calibration import calibrate
from actcodec.training.catalog import POLICY_NAMES, load_policy, policy, policy_options
from actcodec.training.diagnosis import Diagnosis, TensorDiagnosis, diagnose
from actcodec.training.division import division_float_policy
from actcodec.training.error_bounds import BoundedLayer, ErrorBoundPolicy
from actcodec.training.frequency_analysis import FrequencyAnalysis, LayerFrequencies
from actcodec.training.hooks import compress_activations
from actcodec.training.layout import ReconstructionError
from actcodec.training.levels import level_policy
from actcodec.training.mixed_precision import LayerBits, MixedPrecisionPolicy
from actcodec.training.policy import (
    EXACT,
    CodecSpec,
    Policy,
    Rule,
    SavedTensor,
    brc_policy,
    exact_policy,
    jpeg_act_policy,
    jpeg_base_policy,
    sfpr_policy,
    sfpr_zvc_policy,
    uniform_policy,
)
from actcodec.training.policy_data import policy_data, save_policy
from actcodec.training.statistics import Statistics, TensorRecord

__all__ = [
    "EXACT",
    "POLICY_NAMES",
    "AutoPolicy",
    "BlpaPolicy",
    "BoundOptions",
    "BoundedLayer",
    "CodecSpec",
    "Diagnosis",
    "ErrorBoundPolicy",
    "FrequencyAnalysis",
    "LayerBits",
    "LayerFrequencies",
    "MixedPrecisionPolicy",
    "Policy",
    "ReconstructionError",
    "Rule",
    "SavedTensor",
    "Statistics",
    "TensorDiagnosis",
    "TensorRecord",
    "blpa_policy",
    "brc_policy",
    "calibrate",
    "compress_activations",
    "diagnose",
    "division_float_policy",
    "exact_policy",
    "jpeg_act_policy",
    "jpeg_base_policy",
    "level_policy",
    "load_policy",
    "policy",
    "policy_data",
    "policy_options",
    "save_policy",
    "sfpr_policy",
    "sfpr_zvc_policy",
    "uniform_policy",
]
