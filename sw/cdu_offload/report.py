"""offload.md and offload.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cdu_offload.catalog import THROUGH_CDUS, TITLES
from cdu_offload.method import COMPRESS, DECOMPRESS
from cdu_offload.offload import AT_CACHE, AT_DMA
from cdu_offload.simulation import Outcome
from cdu_offload.study import PUBLISHED, Study, ratio, speedups

#: What JPEG-ACT is compared with, and the published headline that goes with it.
_OVER = {
    "vdnn": "offload",
    "cdma": "offload",
    "gist": "compression",
    "sfpr": "compression",
    "division-software": "compression",
    "actnn-software": "compression",
}
#: Those with a table of their own.
_TABLES = ("vdnn", "cdma", "gist")

Outcomes = dict[str, dict[str, Outcome]]


def content(
    study: Study,
    outcomes: Outcomes,
    sweeps: Mapping[str, Sequence[Mapping[str, Any]]],
    facts: Mapping[str, Mapping[str, Any]],
    command: str,
    ratios_source: str,
    unit_source: str,
) -> dict[str, Any]:
    """offload.json: all results, and all that went in but the networks' kernels. Seconds and bytes."""
    unit, platform = study.machine.unit, study.machine.platform
    networks = {
        network.name: {
            "title": network.title,
            "batch": network.batch,
            "family": network.family,
            "saved_bytes": network.saved_bytes,
            "methods": {
                name: asdict(outcome) | {"ratio": ratio(network, outcome)} for name, outcome in outcomes[network.name].items()
            },
        }
        for network in study.networks
    }
    over = [name for name in _OVER if name in study.methods]
    return {
        "command": command,
        "networks": networks,
        "speedups": {name: speedups(outcomes, name) for name in over},
        "published": PUBLISHED,
        "gist_efficiency_at_published": study.gist_efficiency(outcomes, PUBLISHED["compression"]),
        "sweeps": sweeps,
        "platform": asdict(platform) | {"placement": study.machine.placement, "partitions": study.machine.partitions},
        "facts": facts,
        "unit": {
            "source": unit_source,
            "cdus": unit.cdus,
            "clock_hz": unit.clock_hz,
            "values_per_cycle": dict(unit.values_per_cycle),
            "start_cycles": dict(unit.start_cycles),
            "mode_values_per_cycle": {f"{direction} {mode}": rate for (direction, mode), rate in unit.mode_rates.items()},
        },
        "ratios": {
            "source": ratios_source,
            "models": {
                family: {
                    codec: {" ".join(key): before / after for key, (before, after) in sums.sums.items()}
                    for codec, sums in table.items()
                }
                for family, table in study.ratios.items()
                if any(network.family == family for network in study.networks)
            },
        },
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    marks = ["---" if column < left else "--:" for column in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)] + [""]


def markdown(result: Mapping[str, Any]) -> str:
    """offload.md of :func:`content`."""
    lines = ["# Offloading activations: time of a training step", "", f"`{result['command']}`", ""]
    lines += ["A model, not a measurement: docs/user/offload.md says what it assumes.", ""]
    lines += _machine(result)
    lines += ["## Speed-up", "", "![Speed-up](speedup.png)", ""]
    for over in (name for name in _TABLES if name in result["speedups"]):
        table = result["speedups"][over]
        lines += [f"Over {TITLES[over]}:", ""]
        names = list(result["networks"])
        head = ["method", *(result["networks"][name]["title"] for name in names), "geometric mean"]
        lines += _table(head, [[TITLES[m], *(f"{row[n]:.2f}" for n in (*names, "mean"))] for m, row in table.items()])
    lines += _headlines(result)
    lines += ["## Where the time goes", "", "![Stalls](stalls.png)", ""]
    for network in result["networks"].values():
        lines += _network(network)
    lines += ["## Sensitivity", "", "Time of a step / time without offload, geometric mean of the networks.", ""]
    lines += ["![Sensitivity](sensitivity.png)", ""]
    units = {
        "link": ("link", 1e9, "{:g} GB/s"),
        "cdus": ("CDUs", 1, "{}"),
        "ahead": ("layers ahead", 1, "{}"),
        "placement": ("CDUs at", 1, "{}"),
    }
    for sweep, rows in result["sweeps"].items():
        if rows:
            title, scale, text = units[sweep]
            at = list(dict.fromkeys(row["at"] for row in rows))
            found = {(row["series"], row["at"]): row["slowdown"] for row in rows}
            head = [title, *(text.format(place / scale if scale != 1 else place) for place in at)]
            series = list(dict.fromkeys(row["series"] for row in rows))
            lines += _table(head, [[one, *(f"{found[one, place]:.2f}" for place in at)] for one in series])
    lines += _ratios(result)
    lines += ["## Numbers that went in", ""]
    lines += _table(
        ["what", "value", "source"],
        [[name, _plain(fact["value"]), fact["source"]] for name, fact in result["facts"].items()],
        3,
    )
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _machine(result: Mapping[str, Any]) -> list[str]:
    platform, unit = result["platform"], result["unit"]
    rates = ", ".join(f"{4 * rate * unit['clock_hz'] / 1e9:.1f} GB/s {d}" for d, rate in unit["values_per_cycle"].items())
    places = {
        AT_DMA: f"{unit['cdus']} at the DMA engine",
        AT_CACHE: f"one at each of {platform['partitions']} partitions of the cache",
    }
    where = places[platform["placement"]]
    return [
        f"GPU: {platform['flops_per_s'] / 1e12:.2f} Tflop/s and {platform['memory_bytes_per_s'] / 1e9:.0f} GB/s reached; link "
        f"{platform['link_bytes_per_s'] / 1e9:g} GB/s each way; crossbar port {platform['port_bytes_per_s'] / 1e9:.1f} GB/s.",
        f"CDUs: {where}, clock {unit['clock_hz'] / 1e6:.0f} MHz; an array of {unit['cdus']} takes {rates} "
        f"of float32. From {unit['source']}.",
        "",
    ]


def _headlines(result: Mapping[str, Any]) -> list[str]:
    """JPEG-ACT's mean speed-ups beside what its paper says."""
    rows = []
    for over, key in _OVER.items():
        found = result["speedups"].get(over, {}).get("jpeg-act")
        if found is not None:
            values = [value for name, value in found.items() if name != "mean"]
            rows.append(
                [
                    TITLES[over],
                    f"{found['mean']:.2f}",
                    f"{min(values):.2f} to {max(values):.2f}",
                    f"{result['published'][key]} ({key})",
                ]
            )
    if not rows:
        return []
    lines = ["### JPEG-ACT beside its paper's headlines", ""]
    lines += _table(["JPEG-ACT over", "here, mean", "range", "published, over prior"], rows)
    efficiency = result["gist_efficiency_at_published"]
    if efficiency is not None:
        lines += [
            f"GIST is modelled with kernels at the full rate of the memory. JPEG-ACT would be "
            f"{result['published']['compression']} times as fast as GIST if these kernels reached {efficiency:.0%} of it.",
            "",
        ]
    return lines


def _network(network: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, found in network["methods"].items():
        times = (found["seconds"], found["forward_seconds"], found["compute_seconds"], found["overhead_seconds"])
        waiting = (found["stalls"]["link"], found["stalls"]["cdu"])
        rate = "" if found["ratio"] is None else f"{found['ratio']:.2f}"
        moved = found["bytes_moved"][COMPRESS] + found["bytes_moved"][DECOMPRESS]
        rows.append([TITLES[name], *(f"{1e3 * t:.1f}" for t in (*times, *waiting)), f"{moved / 1e9:.2f}", rate])
    head = ["ms", "step", "forward", "own work", "on the GPU", "wait: link", "wait: CDU side", "GB moved", "ratio"]
    return [
        f"### {network['title']}, batch {network['batch']}, {network['saved_bytes'] / 1e9:.2f} GB saved",
        "",
        *_table(head, rows),
    ]


def _ratios(result: Mapping[str, Any]) -> list[str]:
    lines = ["## Ratios", "", f"From {result['ratios']['source']}.", ""]
    for family, table in result["ratios"]["models"].items():
        keys = list(dict.fromkeys(key for sums in table.values() for key in sums))
        known = {codec: sums for codec, sums in table.items() if codec in THROUGH_CDUS or codec == "gist"}
        rows = [[codec, *(f"{sums[key]:.2f}" if key in sums else "" for key in keys)] for codec, sums in known.items()]
        lines += _table([family, *keys], rows)
    return lines
