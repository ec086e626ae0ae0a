"""The ready-made policies by name, and policies from files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

from actcodec.codecs import Codec, codec_options
from actcodec.policies.auto.policy import AUTO_OPTIONS, auto_policy
from actcodec.policies.bounds.acgc import ACGC, acgc_policy
from actcodec.policies.budget.levels import LEVELS, level_policy
from actcodec.policies.policy import CodecFactory, CodecSpec, Policy
from actcodec.policies.policy_data import is_policy_file, options_of, read_data, static_policy
from actcodec.policies.tables.baselines import bf16_policy, cdma_policy, gist_policy, int8_rows_policy, vdnn_policy
from actcodec.policies.tables.block_scales import BLOCK_SCALES, block_scale_policy
from actcodec.policies.tables.blpa import blpa_coded_policy, blpa_policy
from actcodec.policies.tables.division import division_float_policy
from actcodec.policies.tables.jpeg_gmc import jpeg_gmc_policy
from actcodec.policies.tables.modes import (
    actnn_policy,
    brc_policy,
    division_channel_policy,
    division_policy,
    exact_policy,
    jpeg_act_policy,
    jpeg_base_policy,
    sfpr_policy,
    sfpr_zvc_policy,
    uniform_policy,
)
from actcodec.policies.tables.transformer import transformer_nvfp4_policy, transformer_policy

_POLICIES: dict[str, Callable[..., Policy]] = {
    "jpeg-act": jpeg_act_policy,
    "jpeg-gmc": jpeg_gmc_policy,
    "jpeg-base": jpeg_base_policy,
    "sfpr": sfpr_policy,
    "sfpr+zvc": sfpr_zvc_policy,
    "division": division_policy,
    "division-channel": division_channel_policy,
    "division-float": division_float_policy,
    "actnn": actnn_policy,
    "blpa": blpa_policy,
    "blpa-coded": blpa_coded_policy,
    "transformer": transformer_policy,
    "transformer-nvfp4": transformer_nvfp4_policy,
    "brc": brc_policy,
    "gist": gist_policy,
    "cdma": cdma_policy,
    "vdnn": vdnn_policy,
    "bf16": bf16_policy,
    "int8-rows": int8_rows_policy,
    "none": exact_policy,
    "auto": auto_policy,
}
_POLICIES |= {level: partial(level_policy, level) for level in LEVELS}
_POLICIES |= {name: partial(block_scale_policy, name) for name in BLOCK_SCALES}
_POLICIES |= {name: partial(acgc_policy, name) for name in ACGC}
#: Options of policies that differ from those of their main codec.
_OPTIONS: dict[str, tuple[str, ...]] = {
    **LEVELS,
    **ACGC,
    "auto": AUTO_OPTIONS,
    "transformer": tuple(option for option in codec_options("feature-klt") if option != "heads"),
    "division-channel": tuple(option for option in codec_options("division") if option != "range"),
}
#: Main codecs of policies with another name.
_MAIN_CODECS = {"blpa": "blpa-float", "transformer-nvfp4": "nvfp4"}
#: Names that :func:`policy` takes.
POLICY_NAMES = tuple(_POLICIES)


def policy_options(name: str) -> tuple[str, ...]:
    """Return a policy's option names: its own, or those of its main codec; none for a file. UserError for an unknown policy."""
    if is_policy_file(name):
        return ()
    _check_name(name)
    return _OPTIONS[name] if name in _OPTIONS else tuple(codec_options(_MAIN_CODECS.get(name, name)))


def policy(
    which: str | Policy | Codec, codec_factory: CodecFactory | None = None, *, keep_signs: bool | None = None, **options: Any
) -> Policy:
    """Return the policy of a name or a file, of a codec object (:func:`uniform_policy`), or the given policy itself.

    ``keep_signs`` as in :class:`Policy`; the default is that of the named policy: ActNN's levels and SFPR keep signs.

    Raises UserError for unknown names, for options or a factory without a name, for a factory that cannot be called, and for
    other signs than True, False or None.
    """
    if not isinstance(keep_signs, (bool, type(None))):
        raise UserError(f"keep_signs = {keep_signs!r} is not allowed: use True or False")
    if codec_factory is not None and not callable(codec_factory):
        raise UserError(f"codec_factory = {codec_factory!r} is not allowed: use a function that makes a codec from its name")
    if isinstance(which, str) and is_policy_file(which):
        if options or keep_signs is not None:
            raise UserError(f"policy file {which} has its options in it: leave out {', '.join(options)}")
        return load_policy(which, codec_factory)
    if isinstance(which, str):
        _check_name(which)
        named = _POLICIES[which](codec_factory, **options)
        named.keep_signs = named.keep_signs if keep_signs is None else keep_signs
        named.origin = CodecSpec(which, options | ({} if keep_signs is None else {"keep_signs": keep_signs}))
        return named
    if options or codec_factory is not None or keep_signs is not None:
        raise UserError("options and codec_factory go with the name of a codec: a codec object or a policy has its own")
    if isinstance(which, Policy):
        return which
    if isinstance(which, Codec):
        return uniform_policy(which)
    raise UserError(
        f"a {type(which).__name__} is no codec: use {', '.join(_POLICIES)}, a policy file, a Policy, or a codec object"
    )


def load_policy(path: str | Path, codec_factory: CodecFactory | None = None) -> Policy:
    """Return the policy of a TOML or JSON file, see :mod:`~actcodec.policies.policy_data`; UserError names the file."""
    data = read_data(path)
    try:
        if "policy" not in data:
            return static_policy(data, codec_factory)
        name, options = options_of(data)
        _check_name(name)
        return policy(name, codec_factory, **options)
    except UserError as error:
        raise UserError(f"policy file {path}: {error}") from None


def _check_name(name: str) -> None:
    if name not in _POLICIES:
        every = f"use {', '.join(_POLICIES)}, or the path of a .toml or .json file"
        raise UserError(unknown("codec", name, _POLICIES, every))
