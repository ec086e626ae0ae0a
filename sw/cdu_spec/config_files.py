"""Configurations by name, or from TOML files."""

from __future__ import annotations

import tomllib
from pathlib import Path

from cdu_tools.errors import reason
from cdu_tools.near_names import unknown
from cdu_tools.texts import read_text

from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_rules import ConfigError


def named_config(name_or_file: str) -> CduConfig:
    """Return the configuration of a name (``tiny``) or of a TOML file with the parameters as keys.

    Raises ConfigError if there is neither, or if the file is not a valid configuration.
    """
    if name_or_file in CONFIGS:
        return CONFIGS[name_or_file]
    path = Path(name_or_file)
    if path.suffix != ".toml":
        raise ConfigError(
            unknown("configuration", name_or_file, CONFIGS, f"use {', '.join(CONFIGS)}, or the path of a .toml file")
        )
    try:
        values = tomllib.loads(read_text(path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {reason(error)}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {reason(error)}") from None
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return CduConfig(name=path.stem.replace("-", "_")).override(**values)
