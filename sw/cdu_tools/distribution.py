"""The distribution that pip installs: its name on the package index, its version, and the advice to add one of its extras."""

from __future__ import annotations

import importlib.metadata

from cdu_tools.errors import MissingToolError

#: Name on the package index, as in pyproject.toml. The name of the command, ``cdu``, belongs to another project there.
NAME = "actcodec"


def version() -> str:
    """Return the version of the installed distribution; MissingToolError if only the source or its former name is here."""
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        raise MissingToolError(f"the distribution {NAME} is not installed: run `pip install -e .` in the checkout") from None


def adding(extra: str) -> str:
    """Return the command, within backquotes, that adds the packages of one extra of pyproject.toml."""
    return f"`pip install '{NAME}[{extra}]'`"


def missing(what: str | None, extra: str) -> MissingToolError:
    """Return the error of a package or program that is not installed, with the command of the extra that adds it."""
    return MissingToolError(f"{what} is not installed: add it with {adding(extra)}")
