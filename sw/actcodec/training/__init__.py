"""Training with compressed activations: saved-tensor hooks, policies, statistics, comparisons of codecs."""

from actcodec.training.blpa_groups import BlpaPolicy, blpa_policy
from actcodec.training.bound_listener import BoundOptions
from actcodec.training.catalog import POLICY_NAMES, policy, policy_options
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
from actcodec.training.statistics import Statistics, TensorRecord

__all__ = [
    "EXACT",
    "POLICY_NAMES",
    "BlpaPolicy",
    "BoundOptions",
    "BoundedLayer",
    "CodecSpec",
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
    "TensorRecord",
    "blpa_policy",
    "brc_policy",
    "compress_activations",
    "division_float_policy",
    "exact_policy",
    "jpeg_act_policy",
    "jpeg_base_policy",
    "level_policy",
    "policy",
    "policy_options",
    "sfpr_policy",
    "sfpr_zvc_policy",
    "uniform_policy",
]
