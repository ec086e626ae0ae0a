"""The fastest Yosys as a program, ``python -m cdu_tools.yosys_program -ql LOG SCRIPT``.

Package pyosys is a library without a program. Programs that call ``yosys`` with these options, such as sby, can call this one.
"""

import sys
from pathlib import Path

from cdu_tools import yosys


def main(arguments: list[str]) -> None:
    """Run a script of this folder with its log in a file; end the process with a sentence if an error occurs."""
    if len(arguments) != 3 or arguments[0] != "-ql":
        sys.exit(f"the arguments {' '.join(arguments)!r} are not allowed: use -ql LOG SCRIPT")
    log, script = map(Path, arguments[1:])
    try:
        log.write_text(yosys.run(script.read_text(encoding="utf-8"), Path.cwd(), yosys.writer()), encoding="utf-8")
    except yosys.YosysError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
