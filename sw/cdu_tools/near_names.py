"""Advice about names that are not known: the nearest names that are, or all of them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

#: The most names that a message suggests.
_MOST_NAMES = 3
#: Least similarity of a near name: `bits` is not near `widths`, `jpeg` is near `jpeg-act`.
_NEAR = 0.65


def advice(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return what to use in place of an unknown name: ``did you mean dct?``, or ``use dct, idct``.

    Parameters
    ----------
    name
        The name that was given. Case and hyphens in front do not matter in the search for near ones.
    known
        All names that are allowed in its place.
    otherwise
        Advice where no name is near; by default the list of ``known``.
    """
    by_letters = {_letters(one): one for one in known}
    near = [by_letters[one] for one in get_close_matches(_letters(name), by_letters, _MOST_NAMES, _NEAR)]
    return f"did you mean {either(near)}?" if near else otherwise or f"use {', '.join(by_letters.values())}"


def unknown(what: str, name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return the message about an unknown name of a kind: ``unknown block 'dtc': did you mean dct?``."""
    return f"unknown {what} {name!r}: {advice(name, known, otherwise)}"


def _letters(name: object) -> str:
    return str(name).lower().lstrip("-")


def either(names: Iterable[str]) -> str:
    """Return names as a list that one chooses from: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
