"""The ready-made policies by name, and policies by the name of their file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cdu_spec.errors import UserError

from actcodec.codecs import Codec, codec_options
from actcodec.training.auto import AUTO_OPTIONS, auto_policy
from actcodec.training.levels import LEVELS, level_policy
from actcodec.training.policy import (
    CodecFactory,
    CodecSpec,
    Policy,
    actnn_policy,
    brc_policy,
    division_policy,
    exact_policy,
    jpeg_act_policy,
    jpeg_base_policy,
    sfpr_policy,
    sfpr_zvc_policy,
    uniform_policy,
)
from actcodec.training.policy_data import is_policy_file, options_of, read_data, static_policy

_POLICIES: dict[str, Callable[..., Policy]] = {
    "jpeg-act": jpeg_act_policy,
    "jpeg-base": jpeg_base_policy,
    "sfpr": sfpr_policy,
    "sfpr+zvc": sfpr_zvc_policy,
    "division": division_policy,
    "actnn": actnn_policy,
    "brc": brc_policy,
    "none": exact_policy,
    "auto": auto_policy,
} | {level: partial(level_policy, level) for level in LEVELS}
#: Names that :func:`policy` takes.
POLICY_NAMES = tuple(_POLICIES)


def policy_options(name: str) -> tuple[str, ...]:
    """Names of a policy's options: those of its main codec, or of a level, none of a file; UserError for an unknown policy."""
    if is_policy_file(name):
        return ()
    _check_name(name)
    if name == "auto":
        return AUTO_OPTIONS
    return LEVELS[name] if name in LEVELS else tuple(codec_options(name))


def policy(which: str | Policy | Codec, codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """A policy by the name of its main codec or of a file, of a codec object (:func:`uniform_policy`), or the given policy.

    Raises UserError for unknown names, and for options or a factory that go with no name.
    """
    if isinstance(which, str) and is_policy_file(which):
        if options:
            raise UserError(f"policy file {which} has its options in it: leave out {', '.join(options)}")
        return load_policy(which, codec_factory)
    if isinstance(which, str):
        _check_name(which)
        made = _POLICIES[which](codec_factory, **options)
        made.origin = CodecSpec(which, options)
        return made
    if options or codec_factory is not None:
        raise UserError("options and codec_factory go with the name of a codec: a codec object or a policy has its own")
    if isinstance(which, Policy):
        return which
    if isinstance(which, Codec):
        return uniform_policy(which)
    raise UserError(
        f"a {type(which).__name__} is no codec: use {', '.join(_POLICIES)}, a policy file, a Policy, or a codec object"
    )


def load_policy(path: str | Path, codec_factory: CodecFactory | None = None) -> Policy:
    """The policy of a TOML or JSON file, see :mod:`~actcodec.training.policy_data`; UserError names the file."""
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
        raise UserError(f"unknown codec {name!r}: use {', '.join(_POLICIES)}, or the path of a .toml or .json file")
