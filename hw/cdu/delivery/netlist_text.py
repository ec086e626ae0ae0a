"""RTLIL, the text between Amaranth and Yosys, in a form that becomes readable Verilog."""

from __future__ import annotations

import re

#: A name in RTLIL, or the name of a memory inside a parameter of its ports.
_NAME = re.compile(r"""\\(?P<plain>[^\s"]+)|(?<=\\MEMID )"\\\\(?P<memory>[^"]+)\"""")


def plain_names(text: str) -> tuple[str, dict[str, str]]:
    """RTLIL in which all names are letters, digits and underscores, and the new names by the old ones.

    ``dct.rows`` and ``row[3]`` need escapes in Verilog.
    """
    taken: dict[str, str] = {}
    renamed: dict[str, str] = {}

    def plain(original: str) -> str:
        if original not in renamed:
            candidate = re.sub(r"\W+", "_", original.replace(".", "__"), flags=re.ASCII).rstrip("_") or "_"
            while taken.setdefault(candidate, original) != original:
                candidate += "_"
            renamed[original] = candidate
        return renamed[original]

    def replace(match: re.Match[str]) -> str:
        return f'"\\\\{plain(match["memory"])}"' if match["memory"] else f"\\{plain(match['plain'])}"

    lines = text.splitlines(keepends=True)
    wanted = [not line.lstrip().startswith(("attribute", "parameter")) or "\\MEMID" in line for line in lines]
    # Names that are plain already keep their spelling, whatever is made of the others.
    for line, want in zip(lines, wanted, strict=True):
        for match in _NAME.finditer(line) if want else ():
            if re.fullmatch(r"\w+", match["plain"] or match["memory"], re.ASCII):
                plain(match["plain"] or match["memory"])
    return "".join(_NAME.sub(replace, line) if want else line for line, want in zip(lines, wanted, strict=True)), renamed
