"""Read the arguments of ``compress_activations`` from one key of a TOML or JSON file, which may have other keys too.

::

    [compression]
    policy = "jpeg-act"               # a name, or a policy file relative to this one; default "jpeg-gmc"
    options = { dqt = "optH" }        # of the policy
    exclude = ["head"]                # as arguments are only, min_bytes, nonfinite, and the switches: checkpoints,
    min_bytes = 4096                  # compress_loss, double_backward, measure_error, measure_peak

In place of policy and options the table may have the rules of a policy (:mod:`actcodec.policies.policy_data`), as
``[[compression.rules]]``; a name alone may replace the table: ``compression = "sfpr"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdu_spec.modes import JPEG_GMC
from cdu_tools.errors import UserError
from torch import nn

from actcodec.policies.catalog import policy_options
from actcodec.policies.policy_data import check_keys, is_policy_file, of_type, read_data, static_policy
from actcodec.training.activation_compression import ActivationCompression, compress_activations

#: Default key in the file.
KEY = "compression"
_SWITCHES = ("checkpoints", "compress_loss", "double_backward", "measure_error", "measure_peak")
_ARGUMENTS = ("only", "exclude", "min_bytes", "nonfinite", *_SWITCHES)
_SIGNS = "keep_signs"
_BY_NAME = ("policy", "options", _SIGNS)
_BY_RULES = ("rules", "default", _SIGNS, "companions")


def from_toml(model: nn.Module, path: str | Path, key: str = KEY) -> ActivationCompression:
    """Call :func:`compress_activations` with the arguments of a file; UserError names the file and the error."""
    return compress_activations(model, **configuration(path, key))


def configuration(path: str | Path, key: str = KEY) -> dict[str, Any]:
    """Return the arguments of :func:`compress_activations`, and of the callbacks, in one key of a file; see the module.

    Raises UserError, which names the file, for unknown keys and values.
    """
    data = read_data(path, "file")
    if key not in data:
        raise UserError(f'{path} has no key {key!r}: write [{key}] and below it policy = "{JPEG_GMC}", for instance')
    try:
        return _arguments(data[key], Path(path).parent)
    except UserError as error:
        raise UserError(f"{key} in {path}: {error}") from None


def _arguments(given: Any, folder: Path) -> dict[str, Any]:
    table = {"policy": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping):
        raise UserError(f"{table!r} is neither a table nor the name of a policy")
    by_rules = "rules" in table and "policy" not in table
    of_policy = _BY_RULES if by_rules else _BY_NAME
    check_keys(table, (*of_policy, *_ARGUMENTS), "the table")
    arguments = {name: table[name] for name in _ARGUMENTS if name in table}
    for name in _SWITCHES:
        of_type(table, name, bool, False)
    chosen = {name: table[name] for name in of_policy if name in table}
    return arguments | ({"codec": static_policy(chosen)} if by_rules else _named(chosen, folder))


def _named(chosen: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a policy by name with its options."""
    name, options = of_type(chosen, "policy", str, JPEG_GMC), of_type(chosen, "options", dict, {})
    if is_policy_file(name):
        check_keys(chosen, ("policy",), "a policy file, which has its options in it,")
        return {"codec": str(folder / name)}
    check_keys(options, (*policy_options(name), _SIGNS), f"policy {name!r}")
    of_type(chosen, _SIGNS, bool, False)
    return {"codec": name, **options} | {key: chosen[key] for key in chosen if key == _SIGNS}
