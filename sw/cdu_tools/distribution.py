"""The distribution that pip installs: its name on the package index, its version, and the advice to add one of its extras."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections import defaultdict

from cdu_tools.errors import MissingToolError

#: Name on the package index, as in pyproject.toml. The name of the command, ``cdu``, belongs to another project there.
NAME = "actcodec"
#: Distributions that have another name than the module which they install.
_DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn"}


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


def extra_of(module: str) -> str | None:
    """Return the extra of pyproject.toml that installs a module and the fewest other packages, None if no extra does."""
    wanted = _DISTRIBUTIONS.get(module, module).replace("_", "-").lower()
    extras = defaultdict[str, set[str]](set)
    for requirement in importlib.metadata.requires(NAME) or ():
        if found := re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]", requirement):
            extras[found[2]].add(found[1].replace("_", "-").lower())
    return min((extra for extra in extras if wanted in extras[extra]), key=lambda extra: len(extras[extra]), default=None)


def require(module: str) -> None:
    """Raise MissingToolError if a module of an extra is not installed: for work that needs it at its end alone."""
    if importlib.util.find_spec(module) is None:
        raise missing(module, str(extra_of(module)))
