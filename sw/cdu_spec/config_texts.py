"""Texts of parameters, as ``--set`` and tables have them."""

from __future__ import annotations

from typing import Any

from cdu_spec.config_rules import ConfigError, written

#: Text for an empty parameter that may list names.
NOTHING = "none"


def text_of(value: Any) -> str:
    """Return a parameter in the form that ``--set`` takes."""
    return ",".join(map(str, value)) or NOTHING if isinstance(value, tuple) else str(value)


def value_of(name: str, text: str, default: Any) -> Any:
    """Return a parameter's value from its text; its default determines the type. Raises ConfigError for texts of no number."""
    if isinstance(default, int):
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{name} = {written(text)} is not allowed: use a whole number") from None
    if default == () and text == NOTHING:
        return ()
    return tuple(part.strip() for part in text.split(",")) if isinstance(default, tuple) else text
