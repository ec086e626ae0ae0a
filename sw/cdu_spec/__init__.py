"""Definitions shared by hardware and software: configurations, number formats, constants, tables, bitstream.

Standard library only, so that every other package (RTL generator, golden model, test benches, cost reports) can import it.
"""

from cdu_tools.errors import MissingToolError, UserError

from cdu_spec.bitstream import BitstreamError, Header
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_files import named_config
from cdu_spec.config_rules import ConfigError
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.rounding import Rounding

__all__ = [
    "CONFIGS",
    "BitstreamError",
    "CduConfig",
    "ConfigError",
    "Dtype",
    "Header",
    "MatrixView",
    "MissingToolError",
    "Mode",
    "Rounding",
    "UserError",
    "named_config",
]
