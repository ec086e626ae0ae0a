"""The driver in C as files beside a generated unit, whose header they include."""

from __future__ import annotations

from pathlib import Path

from cdu_spec.config_names import DMA_DRIVER

#: Folder of the sources. They include the header of the unit ``tiny``, and each other by the names on the left.
SOURCES = Path(__file__).parent / "c"
_OF_ENGINE = {f"dma{ending}": f"{DMA_DRIVER}{ending}" for ending in (".h", ".c")}
_OF_REGISTERS = {"example.c": "cdu_example.c"}
_HEADER = "tiny.h"


def c_files(unit: str, dma: bool) -> dict[str, str]:
    """Return the text of each file by its name; all of them include ``UNIT.h``.

    Parameters
    ----------
    unit
        Name of the generated files.
    dma
        Whether the unit has a DMA engine: its driver, ``cdu_dma.h`` and ``cdu_dma.c``. Without one there is the example of a
        job, ``cdu_example.c``, whose writes an engine refuses.
    """
    names = _OF_ENGINE if dma else _OF_REGISTERS
    replaced = {_HEADER: f"{unit}.h"} | names
    files = {}
    for source, delivered in names.items():
        text = (SOURCES / source).read_text(encoding="utf-8")
        for old, new in replaced.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        files[delivered] = text.replace("see dma.h", f"see {DMA_DRIVER}.h")
    return files
