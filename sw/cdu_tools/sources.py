"""Checksum of source text, to identify the code behind results that are stored and reused."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens


def sources_sha256(*names: str, code_only: bool = False) -> str:
    """Return a checksum over the Python sources of modules, and of packages with everything in them, as installed.

    With ``code_only``, comments, docstrings and empty lines do not count. ModuleNotFoundError for a name that is not installed.
    """
    digest = hashlib.sha256()
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)
        files = [Path(spec.origin)]
        if spec.submodule_search_locations is not None:
            files = sorted(Path(spec.origin).parent.rglob("*.py"))
        for file in files:
            digest.update(f"{name} {file.relative_to(Path(spec.origin).parent).as_posix()}\n".encode())
            digest.update(code_of(file.read_text(encoding="utf-8")).encode() if code_only else file.read_bytes())
    return digest.hexdigest()


def code_of(source: str) -> str:
    """Return Python source without comments, docstrings, and what they leave of lines that have nothing else."""
    lines = source.splitlines()
    for token in generate_tokens(StringIO(source).readline):
        if token.type == COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines[text.lineno - 1 : text.end_lineno] = [""] * len(lines[text.lineno - 1 : text.end_lineno])
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())
