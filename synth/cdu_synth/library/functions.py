"""Functions of pins in Liberty's notation."""

from __future__ import annotations

import re


def evaluate(function: str, values: dict[str, bool]) -> bool:
    """Return the value of a Liberty function: ``!a``, ``a'``, ``a & b``, ``a * b``, ``a b``, ``a ^ b``, ``a | b``, ``a + b``.

    Raises ValueError for malformed functions and KeyError for unknown pins.
    """
    tokens = re.findall(r"[A-Za-z_]\w*|\S", function)

    def peek() -> str:
        return tokens[0] if tokens else ""

    def atom() -> bool:
        if not tokens:
            raise ValueError(f"function {function!r} ends early")
        token = tokens.pop(0)
        if token == "!":
            return not atom()
        if token == "(":
            value = disjunction()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(f"function {function!r} lacks a parenthesis")
        else:
            value = token == "1" if token in "01" else values[token]
        while peek() == "'":
            tokens.pop(0)
            value = not value
        return value

    def conjunction() -> bool:
        value = difference()
        while peek() and peek() not in ")|+":
            if peek() in "&*":
                tokens.pop(0)
            right = difference()
            value = value and right
        return value

    def difference() -> bool:
        value = atom()
        while peek() == "^":
            tokens.pop(0)
            right = atom()
            value = value != right
        return value

    def disjunction() -> bool:
        value = conjunction()
        while peek() in ("|", "+"):
            tokens.pop(0)
            right = conjunction()
            value = value or right
        return value

    result = disjunction()
    if tokens:
        raise ValueError(f"function {function!r} is malformed")
    return result
