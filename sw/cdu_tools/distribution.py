"""The distribution that pip installs: its name on the package index, its version, and the advice to add one of its extras."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections import defaultdict

from cdu_tools.errors import MissingToolError, not_installed

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
    return not_installed(str(what), adding(extra))


def extra_of(module: str, preferred: str | None = None) -> str | None:
    """Return the extra of pyproject.toml that installs a module, None if no extra does.

    ``preferred``, extras joined by commas, is returned if one of them, or of those that they include, installs the module;
    otherwise the extra with the fewest other packages is.
    """
    wanted = _DISTRIBUTIONS.get(module, module).replace("_", "-").lower()
    extras, included = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for requirement in importlib.metadata.requires(NAME) or ():
        if found := re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?.*\bextra == ['\"]([\w-]+)['\"]", requirement):
            extras[found[3]].add(found[1].replace("_", "-").lower())
            included[found[3]].update((found[2] or "").split(","))

    def installs(extra: str) -> bool:
        return wanted in extras[extra] or any(installs(part) for part in included[extra])

    if preferred and any(installs(extra) for extra in preferred.split(",")):
        return preferred
    return min((extra for extra in extras if wanted in extras[extra]), key=lambda extra: len(extras[extra]), default=None)


def missing_module(error: ModuleNotFoundError, preferred: str | None = None) -> ModuleNotFoundError:
    """Return the error of an import with the command that adds the module, or the given one if no extra does.

    ``preferred`` is as in :func:`extra_of`.
    """
    module = (error.name or "").partition(".")[0]
    extra = extra_of(module, preferred)
    return error if extra is None else ModuleNotFoundError(str(missing(module, extra)), name=error.name)


def require(module: str) -> None:
    """Raise ModuleNotFoundError if a module is not installed: for work that needs it at its end alone."""
    if importlib.util.find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
