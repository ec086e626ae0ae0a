"""Read and write policies as plain values and as files.

A file is TOML or JSON and has either rules, of which the first that matches and fits decides::

    keep_signs = true                 # default: false
    companions = false                # default: true
    default = "exact"                 # for tensors that no rule takes; "exact" unless given

    [[rules]]
    codec = "jpeg-act"                # a codec's name, or "exact"
    options = { dqt = "optH" }        # of the codec
    producer = ["conv", "sum"]        # these four: any unless given
    consumer = ["norm"]
    module = "layer1.*"
    dtypes = ["float32", "bfloat16"]
    min_rank = 3                      # 0 unless given

or the name of a ready-made policy, as for all adaptive policies::

    policy = "actnn-L3"
    options = { bits = 1.5, interval = 20 }
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from cdu_tools.errors import UserError, reason
from cdu_tools.files import write_whole
from cdu_tools.near_names import unknown
from cdu_tools.texts import read_text
from torch.overrides import get_overridable_functions

from actcodec import codecs
from actcodec.codecs import Codec
from actcodec.golden.dtype_names import dtype_name
from actcodec.policies.policy import CODED_DTYPES, EXACT, CodecFactory, CodecSpec, Policy, Rule
from actcodec.saved.operations import CHECKPOINT, UNKNOWN, canonical, plain

#: Suffixes of policy files.
SUFFIXES = (".toml", ".json")
_DTYPES = {dtype_name(dtype): dtype for dtype in (*CODED_DTYPES, torch.float64)}
_NAME_OF = {dtype: name for name, dtype in _DTYPES.items()}


def is_policy_file(name: str) -> bool:
    """Return whether a name has the suffix of a policy file."""
    return name.endswith(SUFFIXES)


def read_data(path: str | Path, what: str = "policy file") -> dict[str, Any]:
    """Return the content of a file; UserError, which calls it ``what``, if it cannot be read or is neither TOML nor JSON."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise UserError(f"{what} {path} ends with neither {' nor '.join(SUFFIXES)}: rename it")
    try:
        text = read_text(path)
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise UserError(f"cannot read {what} {path}: {reason(error)}") from None
    except ValueError as error:
        raise UserError(f"{what} {path} is not valid {path.suffix[1:].upper()}: {reason(error)}") from None
    if not isinstance(content, dict):
        raise UserError(f"{what} {path} holds no table: write rules, or the name of a policy")
    return content


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy as a JSON file that :func:`~actcodec.policies.catalog.load_policy` reads.

    UserError when it is not data (see :func:`policy_data`), and for another suffix than ``.json``.
    """
    path = Path(path)
    if path.suffix != ".json":
        raise UserError(f"policy file {path} is to be written as JSON: let its name end with .json")
    write_whole(path, json.dumps(policy_data(policy), indent=2) + "\n")


def policy_data(policy: Policy) -> dict[str, Any]:
    """Return a policy as plain values: its rules, or name and options of a ready-made adaptive one.

    UserError for a policy with more than names and options, such as a codec object that no options describe.
    """
    if type(policy) is not Policy:
        if policy.origin is None:
            raise UserError(f"a {type(policy).__name__} made by hand is no data: make it by name with actcodec.policies.policy")
        return {"policy": policy.origin.name, "options": _plain(policy.origin.options)}
    data: dict[str, Any] = {"keep_signs": True} if policy.keep_signs else {}
    data |= {} if policy.companions else {"companions": False}
    if policy.default != EXACT:
        data["default"] = _default_data(policy.default)
    return data | {"rules": [_rule_data(rule) for rule in policy.rules]}


def static_policy(data: Mapping[str, Any], codec_factory: CodecFactory | None = None) -> Policy:
    """Return the policy of a table with rules; UserError for unknown keys and values."""
    check_keys(data, ("rules", "default", "keep_signs", "companions"), "a policy")
    rules = of_type(data, "rules", list, [])
    default = data.get("default", EXACT)
    keep_signs, companions = of_type(data, "keep_signs", bool, False), of_type(data, "companions", bool, True)
    if "rules" not in data and "default" not in data:
        raise UserError("the policy has neither rules nor a default: write one of them, or the name of a policy")
    made = [_rule(rule) for rule in rules]
    return Policy(made, codec_spec(default), codec_factory, keep_signs=keep_signs, companions=companions)


def options_of(data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and options from a table that names a ready-made policy."""
    check_keys(data, ("policy", "options"), "a policy by name")
    return of_type(data, "policy", str, ""), dict(of_type(data, "options", dict, {}))


def codec_spec(data: Any) -> str | CodecSpec:
    """Return the codec of a name, or of a table with ``codec`` and ``options``."""
    if isinstance(data, (str, CodecSpec)):
        return data
    if not isinstance(data, Mapping):
        raise UserError(
            f"codec {data!r} is neither a name nor a table: use for instance {{codec = 'jpeg-act', options = {{}}}}"
        )
    check_keys(data, ("codec", "options"), "a codec")
    return _spec(data)


def spec_of(codec: str | CodecSpec | Codec) -> CodecSpec:
    """Return name and options of a codec; UserError for an object that they do not describe."""
    if isinstance(codec, str):
        return CodecSpec(codec)
    if isinstance(codec, CodecSpec):
        return codec
    if not is_dataclass(codec) or codec.name not in codecs.CODEC_NAMES or type(codecs.codec(codec.name)) is not type(codec):
        raise UserError(f"a codec object of type {type(codec).__name__} is no data: give a codec's name and options")
    pairs = ((option, getattr(codec, option.name)) for option in fields(codec))
    return CodecSpec(codec.name, {option.name: value for option, value in pairs if not _is_default(option.default, value)})


def _is_default(default: Any, value: Any) -> bool:
    return default is not MISSING and type(value) is type(default) and bool(value == default)


def _default_data(codec: str | CodecSpec | Codec) -> Any:
    spec = spec_of(codec)
    return _spec_data(spec) if spec.options else spec.name


def _spec_data(spec: CodecSpec) -> dict[str, Any]:
    return {"codec": spec.name} | ({"options": _plain(spec.options)} if spec.options else {})


def _rule_data(rule: Rule) -> dict[str, Any]:
    data = _spec_data(spec_of(rule.codec))
    for name, words in (("producer", rule.producer), ("consumer", rule.consumer)):
        if words:
            data[name] = list(words)
    if rule.module != "*":
        data["module"] = rule.module
    if rule.dtypes:
        data["dtypes"] = [_NAME_OF[dtype] for dtype in rule.dtypes]
    return data | ({"min_rank": rule.min_rank} if rule.min_rank else {})


def _plain(value: Any) -> Any:
    """Return an option as plain values."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, CodecSpec):
        return _spec_data(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    raise UserError(f"an option of type {type(value).__name__} is no data: use numbers, texts and lists")


def _rule(data: Any) -> Rule:
    if not isinstance(data, Mapping):
        raise UserError(f"rule {data!r} is no table: use for instance {{codec = 'sfpr', producer = ['conv']}}")
    check_keys(data, ("codec", "options", "producer", "consumer", "module", "dtypes", "min_rank"), "a rule")
    codec = _spec(data)
    return Rule(
        EXACT if codec.name == EXACT else codec,
        _words(data, "producer"),
        tuple(_consumer(name) for name in _words(data, "consumer")),
        of_type(data, "module", str, "*"),
        tuple(_dtype(name) for name in _words(data, "dtypes")),
        of_type(data, "min_rank", int, 0),
    )


def _spec(data: Mapping[str, Any]) -> CodecSpec:
    if "codec" not in data:
        raise UserError(f"a table has no codec: give one, {', '.join(codecs.CODEC_NAMES)}, or {EXACT}")
    return CodecSpec(of_type(data, "codec", str, ""), dict(of_type(data, "options", dict, {})))


def _words(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    words = of_type(data, key, list, [])
    if not all(isinstance(word, str) for word in words):
        raise UserError(f"{key} = {words!r} in a policy is not allowed: use a list of names")
    return tuple(words)


def _consumer(name: str) -> str:
    if name not in _consumers():
        raise UserError(unknown("consumer", name, sorted(_consumers()), f"use {UNKNOWN}, or the name of a torch function"))
    return name


@cache
def _consumers() -> frozenset[str]:
    """Return the names that a consumer may have: torch's functions, the words for groups of them, and those in place of one."""
    functions = (function for some in get_overridable_functions().values() for function in some)
    names = {name for function in functions if (name := getattr(function, "__name__", None))}
    return frozenset({*map(plain, names), *map(canonical, names), CHECKPOINT, UNKNOWN})


def _dtype(name: str) -> torch.dtype:
    if name not in _DTYPES:
        raise UserError(unknown("number format", name, _DTYPES))
    return _DTYPES[name]


def of_type(data: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """Return the value of a key; UserError if it has another type."""
    value = data.get(key, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UserError(f"{key} = {value!r} in a policy is not allowed: use a {kind.__name__}")
    return value


def check_keys(data: Mapping[str, Any], allowed: Sequence[str], what: str) -> None:
    """Raise UserError for a key that is not allowed."""
    for key in data:
        if key not in allowed:
            raise UserError(f"{what} has no {key!r}: use {', '.join(allowed)}")
