"""Find the C++ compiler for kernels, simulators and compiled units."""

from __future__ import annotations

import os
import shutil

from cdu_tools.errors import MissingToolError


def cpp_compiler(user: str, otherwise: str = "") -> str:
    """Return the path of the compiler: ``$CXX``, or else the first of c++, g++ and clang++ that is found.

    Raises MissingToolError, a sentence that begins with its ``user`` and may end with what to do ``otherwise``.
    """
    own = os.environ.get("CXX")
    found = next((path for name in ([own] if own else ["c++", "g++", "clang++"]) if (path := shutil.which(name))), None)
    if found is None:
        wanted = f"the compiler {own} of $CXX" if own else "a C++ compiler"
        raise MissingToolError(f"{user} needs {wanted}: add one with `apt-get install g++`{otherwise}")
    return found
