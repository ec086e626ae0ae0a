"""Training with compressed activations: saved-tensor hooks, policies, statistics, comparisons of codecs."""

from actcodec.policies.auto.policy import AutoPolicy
from actcodec.policies.bounds.bound_listener import BoundOptions
from actcodec.policies.bounds.error_bounds import BoundedLayer, ErrorBoundPolicy
from actcodec.policies.budget.levels import level_policy
from actcodec.policies.budget.mixed_precision import LayerBits, MixedPrecisionPolicy
from actcodec.policies.catalog import POLICY_NAMES, load_policy, policy, policy_options
from actcodec.policies.groups.norm_groups import GroupPolicy
from actcodec.policies.policy import EXACT, CodecSpec, Policy, Rule, SavedTensor
from actcodec.policies.policy_data import policy_data, save_policy
from actcodec.policies.tables.blpa import blpa_policy
from actcodec.policies.tables.division import division_float_policy
from actcodec.policies.tables.modes import (
    brc_policy,
    exact_policy,
    jpeg_act_policy,
    jpeg_base_policy,
    sfpr_policy,
    sfpr_zvc_policy,
    uniform_policy,
)
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
