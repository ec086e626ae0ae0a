"""Training with compressed activations: saved-tensor hooks, policies, statistics, comparisons of codecs."""

from actcodec.training.hooks import compress_activations
from actcodec.training.layout import ReconstructionError
from actcodec.training.policy import (
    EXACT,
    POLICY_NAMES,
    CodecSpec,
    Policy,
    Rule,
    SavedTensor,
    brc_policy,
    exact_policy,
    jpeg_act_policy,
    jpeg_base_policy,
    policy,
    sfpr_policy,
    sfpr_zvc_policy,
    uniform_policy,
)
from actcodec.training.statistics import Statistics, TensorRecord

__all__ = [
    "EXACT",
    "POLICY_NAMES",
    "CodecSpec",
    "Policy",
    "ReconstructionError",
    "Rule",
    "SavedTensor",
    "Statistics",
    "TensorRecord",
    "brc_policy",
    "compress_activations",
    "exact_policy",
    "jpeg_act_policy",
    "jpeg_base_policy",
    "policy",
    "sfpr_policy",
    "sfpr_zvc_policy",
    "uniform_policy",
]
