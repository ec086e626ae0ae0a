"""One HTML page of the results that commands left in a folder: pictures and tables, and nothing from elsewhere."""

from __future__ import annotations

import base64
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cdu_tools.report import Table

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #d5dde5; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg, img { max-width: 100%; height: auto; }
figcaption, footer { color: #52606d; font-size: .9rem; }
"""
#: Buses of a unit on the side of its values, packed bytes and control, by the beginning of their ports' names.
_SIDES = (
    ("values and scales", ("s_axis", "s_axis_scale", "m_axis_values", "s_axis_reciprocal")),
    ("packed bytes", ("m_axis", "s_axis_packed")),
)
_CONTROL = "registers and control"


def page(title: str, lines: Iterable[tuple[str, str, Path]], contents: Mapping[Path, Any], folder: Path) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Heading of the page.
    lines
        What was found, as ``cdu summary`` prints it: name, result, folder of the result.
    contents
        Contents of JSON files by path.
    folder
        Folder of the page, to which links are relative.
    """
    found = [(what, result, _link(where, folder)) for what, result, where in lines]
    sections = [f"<h1>{escape(title)}</h1>", "<h2>What was found</h2>", _html(("what", "result", "where"), found)]
    for path, content in sorted(contents.items(), key=lambda item: _place(item[1])):
        sections += _section(path, content, folder)
    body = "\n".join(sections)
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _place(content: Any) -> int:
    """Return the place of a file's section on the page."""
    first_to_last = ("ports", "tests", "pdk")
    return next((place for place, key in enumerate(first_to_last) if key in content), len(first_to_last))


def _section(path: Path, content: Any, folder: Path) -> Iterator[str]:
    """Yield the parts of the page that present one file; none for files of other kinds."""
    match content:
        case {"name": str(name), "ports": ports, "sha256": files}:
            yield f"<h2>The unit {escape(name)}</h2>"
            buses = buses_of(ports)
            yield _figure(_unit(name, buses), f"{name}: its buses with their data bits, as {path.name} names them")
            yield _html(("bus", "direction", "ports", "bits"), [(bus, *about) for bus, about in buses.items()])
            sizes = [(path.parent / file, sum_) for file, sum_ in files.items()]
            yield _html(
                ("file", "bytes", "SHA-256 begins with"),
                [(_link(file, folder), f"{file.stat().st_size:,}", sum_[:16]) for file, sum_ in sizes if file.is_file()],
            )
        case {"tests": _, "failures": _, "results": results}:
            yield "<h2>The Verilog against the golden model</h2>"
            yield _html(
                ("run", "test", "result", "seconds"),
                [(one["group"], one["name"], one["status"], f"{one['seconds']:.1f}") for one in results],
            )
            for one in results:
                if figures := one.get("figures"):
                    yield _html((one["name"], ""), [(key.replace("_", " "), str(figure)) for key, figure in figures.items()])
        case {"pdk": pdk, "blocks": blocks}:
            yield f"<h2>Cost before layout, {escape(pdk)}</h2>"
            yield _figure(_bars({name: cost["ge"] / 1e3 for name, cost in blocks.items()}, "kGE"), "area of each block")
            yield _html(
                ("block", "kGE", "flip-flops", "MHz"),
                [
                    (name, f"{cost['ge'] / 1e3:.1f}", f"{cost['flip_flops']:,}", f"{cost['mhz']:.0f}")
                    for name, cost in blocks.items()
                ],
            )
        case {"model": model, "dataset": dataset, "runs": runs}:
            yield f"<h2>Training: {escape(model)} on {escape(dataset)}</h2>"
            curves = path.with_name("curves.png")
            if curves.is_file():
                data = base64.b64encode(curves.read_bytes()).decode()
                picture = f'<img src="data:image/png;base64,{data}" alt="loss, score and ratio of each codec">'
                yield _figure(picture, f"{len({run['seed'] for run in runs})} seeds: {_link(curves, folder)}")
            yield _html(*_runs(runs))


def buses_of(ports: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str, str]]:
    """Return direction of the data, number of ports and bits of data of each bus of a unit; single ports are buses of one."""
    buses: dict[str, list[Mapping[str, Any]]] = {}
    for port in ports:
        bus, _, last = port["name"].rpartition("_")
        buses.setdefault(bus if bus else last, []).append(port)
    return {bus: (_direction(bus, mine), str(len(mine)), str(_data_bits(mine))) for bus, mine in buses.items()}


def _direction(bus: str, ports: Sequence[Mapping[str, Any]]) -> str:
    if bus.startswith(("s_axil", "s_axi_", "m_axi_")):
        return "both"
    if len(ports) == 1:
        return str(ports[0]["direction"])
    return "output" if bus.startswith("m_") else "input"


def _data_bits(ports: Sequence[Mapping[str, Any]]) -> int:
    data = [int(port["width"]) for port in ports if port["name"].endswith("data")]
    return max(data or [int(port["width"]) for port in ports])


def _unit(name: str, buses: Mapping[str, tuple[str, str, str]]) -> str:
    """Return a drawing of a unit: a box with its buses on the sides, arrows where data goes, bits beside them."""
    left, right = ([bus for bus in buses if bus in side] for _, side in _SIDES)
    below = [bus for bus in buses if bus not in {*left, *right}]
    height = 44 * max(len(left), len(right), 1) + 60
    parts = [
        f'<rect x="300" y="20" width="300" height="{height}" rx="8" fill="#fff4e2" stroke="#44546a"/>',
        f'<text x="450" y="{height / 2 + 16:.0f}" font-weight="bold" text-anchor="middle">{escape(name)}</text>',
    ]
    for (title, _), mine, x, ends in ((_SIDES[0], left, 20, (200, 300)), (_SIDES[1], right, 880, (700, 600))):
        anchor = "start" if x < 300 else "end"
        parts.append(f'<text x="{x}" y="30" font-weight="bold" text-anchor="{anchor}">{title}</text>')
        for place, bus in enumerate(mine):
            y = 62 + 44 * place
            direction, _, bits = buses[bus]
            begin, end = ends if direction == "input" else ends[::-1]
            parts.append(f'<line x1="{begin}" x2="{end}" y1="{y}" y2="{y}" stroke="#44546a" marker-end="url(#tip)"/>')
            parts.append(f'<text x="{x}" y="{y + 5}" text-anchor="{anchor}">{escape(bus)}</text>')
            parts.append(f'<text x="{sum(ends) // 2}" y="{y - 6}" font-size="12" text-anchor="middle">{bits} bits</text>')
    words = ", ".join(f"{bus} ({buses[bus][2]})" for bus in below)
    parts.append(f'<text x="450" y="{height + 48}" text-anchor="middle">{_CONTROL}: {escape(words)}</text>')
    tip = '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
    return _svg(900, height + 70, f'<defs>{tip}<path d="M0 0L10 5L0 10z" fill="#44546a"/></marker></defs>{"".join(parts)}')


def _bars(numbers: Mapping[str, float], unit: str) -> str:
    """Return a drawing of numbers as bars with names."""
    most = max(numbers.values(), default=0) or 1
    parts = []
    for place, (name, number) in enumerate(numbers.items()):
        y, width = 10 + 34 * place, 560 * number / most
        parts.append(f'<text x="170" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="180" y="{y}" width="{width:.1f}" height="24" fill="#5b8db8"/>')
        parts.append(f'<text x="{188 + width:.1f}" y="{y + 17}">{number:.1f} {escape(unit)}</text>')
    return _svg(900, 20 + 34 * len(numbers), "".join(parts))


def _svg(width: int, height: int, content: str) -> str:
    font = 'font-family="system-ui, sans-serif" font-size="14" fill="#1d2733"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {font}>{content}</svg>'


def _runs(runs: Sequence[Mapping[str, Any]]) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return header and rows of the scores of each codec: its mean, each seed, and the ratio of what is saved."""
    seeds = sorted({run["seed"] for run in runs})
    rows = []
    for codec in dict.fromkeys(run["codec"] for run in runs):
        mine = {run["seed"]: run for run in runs if run["codec"] == codec}
        scores = [f"{mine[seed]['score']:.2f}" if seed in mine else "" for seed in seeds]
        mean, ratio = (statistics.mean(run[key] for run in mine.values()) for key in ("score", "ratio_of_everything"))
        rows.append((codec, f"{mean:.2f}", *scores, f"{ratio:.2f}"))
    return ("codec", f"mean {runs[0]['score_name']}", *(f"seed {seed}" for seed in seeds), "saved tensors smaller by"), rows


class _Markup(str):
    """Text of a cell that is HTML already."""

    __slots__ = ()


def _link(path: Path, folder: Path) -> _Markup:
    """Return a link to a file or folder below the page's folder."""
    relative = path.relative_to(folder).as_posix()
    return _Markup(f'<a href="{escape(quote(relative))}">{escape(relative)}</a>')


def _figure(picture: str, caption: str) -> str:
    text = caption if "<a " in caption else escape(caption)
    return f"<figure>{picture}<figcaption>{text}</figcaption></figure>"


def _html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; columns of numbers are aligned right."""
    numeric = Table(header, rows).numeric()
    head = "".join(_cell(cell, right, "th") for cell, right in zip(header, numeric, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell(cell, right) for cell, right in zip(row, numeric, strict=True))}</tr>\n" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def _cell(cell: str, right: bool, tag: str = "td") -> str:
    return f"<{tag}{' class=n' if right else ''}>{cell if isinstance(cell, _Markup) else escape(cell)}</{tag}>"
