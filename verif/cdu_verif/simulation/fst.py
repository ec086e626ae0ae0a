"""FST waveforms from Verilator without packages that an installation may lack.

Verilator's writer calls five functions of LZ4 and zlib. Headers of this package define them, so that neither development
package
is needed, and empty archives satisfy the makefile, which links both libraries.
"""

from __future__ import annotations

from pathlib import Path

from cdu_tools.files import write_whole
from cdu_tools.verilator import Verilator

#: lz4.h and zlib.h.
HEADERS = Path(__file__).with_name("fst_headers")
_EMPTY_ARCHIVE = "!<arch>\n"


def options(tool: Verilator, folder: Path) -> list[str]:
    """Return options that ``--trace-fst`` needs with a Verilator, and put the files that they name into ``folder``."""
    if not (tool.include / "fstcpp").is_dir():
        return []  # older releases include their own LZ4, and use more of zlib than the header here has
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("lz4", "z"):
        write_whole(folder / f"lib{name}.a", _EMPTY_ARCHIVE)
    return ["-CFLAGS", f"-I{HEADERS}", "-LDFLAGS", f"-L{folder}"]
