"""Names of codecs, networks and the like in the help of options, out of the catalogues that define them.

A help text has ``{codecs}`` where the names are to stand. They are looked up when the help is shown: torch, which most of the
catalogues need, takes longer to import than most commands to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter

from cdu_tools.distribution import missing_module


def _policies() -> Iterable[str]:
    from actcodec.policies.catalog import POLICY_NAMES

    return POLICY_NAMES


def _models() -> Iterable[str]:
    from actcodec.study.networks import NETWORKS

    return NETWORKS


def _families() -> Iterable[str]:
    from actcodec.policies.recommended import families

    return families()


def _datasets() -> Iterable[str]:
    from actcodec.study.data import DATASET_NAMES

    return DATASET_NAMES


def _methods() -> Iterable[str]:
    from cdu_offload.catalog import TITLES

    return TITLES


def _networks() -> Iterable[str]:
    from cdu_offload.network import shipped

    return shipped()


def _parts() -> Iterable[str]:
    from cdu_fpga.fpga_devices import FAMILIES

    return [name for family in FAMILIES.values() for name in (family.name, *family.devices)]


_NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "policies": _policies,
    "models": _models,
    "families": _families,
    "datasets": _datasets,
    "methods": _methods,
    "networks": _networks,
    "parts": _parts,
}


def with_names(text: str) -> str:
    """A help text with the names where it asks for some."""
    asked = [name for _, name, _, _ in Formatter().parse(text) if name is not None and name in _NAMES]
    return text.format(**{name: _listed(name) for name in asked}) if asked else text


def _listed(name: str) -> str:
    """Return the names of a catalogue, or what has to be installed to know them."""
    try:
        return ", ".join(_NAMES[name]())
    except ModuleNotFoundError as error:
        return f"({missing_module(error, 'train')})"
