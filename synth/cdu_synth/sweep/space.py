"""Design space: a configuration, and the values that some of its parameters take."""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.config_texts import text_of
from cdu_tools.distinct import check_distinct
from cdu_tools.errors import UserError, reason
from cdu_tools.near_names import advice
from cdu_tools.texts import read_text

#: Parameters with their values, all as texts in the form that ``--set`` takes.
Space = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class SweepPoint:
    """One configuration of a space."""

    parameters: dict[str, str]  #: the varied parameters, in the form that ``--set`` takes
    config: CduConfig


@dataclass(frozen=True)
class Skipped:
    """Combination of values that is not a point."""

    parameters: dict[str, str]
    reason: str


def parse(settings: Sequence[str]) -> dict[str, list[str]]:
    """Return the space of ``KEY=VALUE,VALUE`` texts; values of a parameter that is a set are separated by ``|``.

    ``cdus=1,2,4``, ``modes=jpeg-act|sfpr,sfpr+zvc``. Raises UserError for a text of another form and for a parameter or value
    that is given twice, ConfigError for an unknown parameter.
    """
    space: dict[str, list[str]] = {}
    for setting in settings:
        key, equals, values = (part.strip() for part in setting.partition("="))
        separator = "|" if _is_set(key) else ","
        texts = [text.strip() for text in values.split(separator)]
        if not equals or not all(texts):
            raise UserError(f"--vary {setting!r} is not of the form {key or 'KEY'}=VALUE{separator}VALUE")
        if key in space:
            raise UserError(f"{key} is varied twice: name all of its values once, {key}=VALUE{separator}VALUE")
        check_distinct(key, texts)
        space[key] = texts
    return space


def read(path: Path) -> dict[str, list[str]]:
    """Return the space of a TOML file: parameters as keys, each with an array of its values (for sets an array of arrays).

    Raises UserError for a file of another form, ConfigError for an unknown parameter.
    """
    try:
        content = tomllib.loads(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"cannot read the space {path}: {reason(error)}") from None
    space: dict[str, list[str]] = {}
    for key, values in content.items():
        inner = list if _is_set(key) else (int, str)
        if not isinstance(values, list) or not values or not all(isinstance(value, inner) for value in values):
            form = "[[...], ...]" if inner is list else "[...]"
            raise UserError(f"{key} of {path} is not an array of its values: use {key} = {form}")
        space[key] = [",".join(map(str, value)) if isinstance(value, list) else str(value) for value in values]
        check_distinct(key, space[key])
    return space


def points(base: CduConfig, space: Space, sample: int | None = None, seed: int = 0) -> tuple[list[SweepPoint], list[Skipped]]:
    """Return all combinations of a space that are valid and differ, or a random ``sample`` of them; and the skipped ones.

    Raises UserError for a sample of less than one.
    """
    total = math.prod(len(values) for values in space.values())
    chosen: Sequence[int] = range(total)
    if sample is not None:
        if sample < 1:
            raise UserError(f"a sample of {sample} points is not allowed: use 1 or more")
        chosen = sorted(random.Random(seed).sample(chosen, min(sample, total)))
    found: dict[CduConfig, SweepPoint] = {}
    skipped: list[Skipped] = []
    for number in chosen:
        texts = _combination(space, number)
        try:
            config = base.override_texts(texts)
        except ConfigError as error:
            skipped.append(Skipped(texts, str(error)))
            continue
        if config in found:
            skipped.append(Skipped(texts, "the same configuration is a point already"))
        else:
            found[config] = SweepPoint({name: text_of(getattr(config, name)) for name in space}, config)
    return list(found.values()), skipped


def _combination(space: Space, number: int) -> dict[str, str]:
    """Return combination ``number``; the last parameter changes fastest."""
    texts = {}
    for name, values in reversed(list(space.items())):
        number, place = divmod(number, len(values))
        texts[name] = values[place]
    return {name: texts[name] for name in space}


def _is_set(name: str) -> bool:
    """Return whether the values of a parameter are sets; ConfigError if the parameter cannot be varied."""
    defaults = {field.name: field.default for field in fields(CduConfig) if field.name != "name"}
    if name not in defaults:
        raise ConfigError(f"{name!r} is not a parameter that can be varied: {advice(name, sorted(defaults))}")
    return isinstance(defaults[name], tuple)
