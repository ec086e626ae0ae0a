"""Training with compressed activations: saved-tensor hooks, policies, statistics, comparisons of codecs."""

from actcodec.policies.auto import AutoPolicy
from actcodec.policies.blpa import blpa_policy
from actcodec.policies.bound_listener import BoundOptions
from actcodec.policies.catalog import POLICY_NAMES, load_policy, policy, policy_options
from actcodec.policies.division import division_float_policy
from actcodec.policies.error_bounds import BoundedLayer, ErrorBoundPolicy
from actcodec.policies.levels import level_policy
from actcodec.policies.mixed_precision import LayerBits, MixedPrecisionPolicy
from actcodec.policies.norm_groups import GroupPolicy
from actcodec.policies.policy import (
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
from actcodec.policies.policy_data import policy_data, save_policy
from actcodec.saved.layout import ReconstructionError
from actcodec.saved.statistics import Statistics, TensorRecord
from actcodec.training.activation_compression import ActivationCompression, compress_activations
from actcodec.training.configuration import configuration, from_toml

__all__ = [
    "EXACT",
    "POLICY_NAMES",
    "ActivationCompression",
    "AutoPolicy",
    "BoundOptions",
    "BoundedLayer",
    "CodecSpec",
    "ErrorBoundPolicy",
    "GroupPolicy",
    "LayerBits",
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
    "configuration",
    "division_float_policy",
    "exact_policy",
    "from_toml",
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
