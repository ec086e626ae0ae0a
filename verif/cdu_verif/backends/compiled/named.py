"""Backend ``rtl``: selection of compiled units by the name of their configuration."""

from __future__ import annotations

from actcodec.backends.backend import Backend
from cdu_spec.config import CduConfig
from cdu_spec.config_files import named_config

from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.backends.compiled.dma_backend import DmaBackend

#: Default configuration of the backend ``rtl``.
DEFAULT_CONFIG = CduConfig.name


def rtl(name: str | None) -> Backend:
    """Return the backend ``rtl`` (``tiny``) or ``rtl:NAME``, a named configuration or a TOML file, for every number format.

    With ``dma_bits`` in the configuration tensors go through the unit's DMA engine.
    """
    config = named_config(DEFAULT_CONFIG if name is None else name)
    if config.dma_bits:
        return DmaBackend(config, every_format=True)
    return RtlBackend(config, every_format=True)
