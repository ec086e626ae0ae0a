"""The report of an offload study: offload.md and offload.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cdu_tools.report import Page, Table

from cdu_offload.catalog import THROUGH_CDUS, TITLES
from cdu_offload.method import COMPRESS, DECOMPRESS
from cdu_offload.offload import AT_CACHE, AT_DMA
from cdu_offload.simulation import StepOutcome
from cdu_offload.study import PUBLISHED, OffloadStudy, ratio, speedups

#: Methods that JPEG-ACT is compared with, and the published headline for each.
_OVER = {
    "vdnn": "offload",
    "cdma": "offload",
    "gist": "compression",
    "sfpr": "compression",
    "division-software": "compression",
    "actnn-software": "compression",
}
#: Methods with a table of their own.
_TABLES = ("vdnn", "cdma", "gist")
#: Axis of a sweep, unit of its positions, and their format.
_AXES = {
    "link": ("link", 1e9, "{:g} GB/s"),
    "cdus": ("CDUs", 1, "{}"),
    "ahead": ("layers ahead", 1, "{}"),
    "placement": ("CDUs at", 1, "{}"),
}

Outcomes = dict[str, dict[str, StepOutcome]]


def content(
    study: OffloadStudy,
    outcomes: Outcomes,
    sweeps: Mapping[str, Sequence[Mapping[str, Any]]],
    facts: Mapping[str, Mapping[str, Any]],
    command: str,
    ratios_source: str,
    unit_source: str,
) -> dict[str, Any]:
    """Return offload.json: all results, and all inputs but the networks' kernels. Seconds and bytes."""
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


def markdown(result: Mapping[str, Any]) -> str:
    """Return offload.md of :func:`content`."""
    parts: list[str | Table] = [
        f"`{result['command']}`",
        "A model, not a measurement: docs/user/offload.md says what it assumes.",
        _machine(result),
        "## Speed-up",
        "![Speed-up](speedup.png)",
    ]
    for over in (name for name in _TABLES if name in result["speedups"]):
        parts += [f"Over {TITLES[over]}:", _speedups(result, over)]
    parts += [*_headlines(result), "## Where the time goes", "![Stalls](stalls.png)"]
    for network in result["networks"].values():
        parts += _network(network)
    parts += [
        "## Sensitivity",
        "Time of a step / time without offload, geometric mean of the networks.",
        "![Sensitivity](sensitivity.png)",
        *(_sweep(name, rows) for name, rows in result["sweeps"].items()),
        *_ratios(result),
        "## Numbers that went in",
        _facts(result["facts"]),
    ]
    return Page("Offloading activations: time of a training step", parts).markdown()


def _speedups(result: Mapping[str, Any], over: str) -> Table:
    """Return the speed-up of every method over one of them, a column per network."""
    names = list(result["networks"])
    head = ["method", *(result["networks"][name]["title"] for name in names), "geometric mean"]
    return Table(
        head, [[TITLES[m], *(f"{row[n]:.2f}" for n in (*names, "mean"))] for m, row in result["speedups"][over].items()]
    )


def _sweep(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the slowdown of every series of a sweep, a column per position on its axis."""
    title, scale, text = _AXES[name]
    at = list(dict.fromkeys(row["at"] for row in rows))
    found = {(row["series"], row["at"]): row["slowdown"] for row in rows}
    head = [title, *(text.format(place / scale if scale != 1 else place) for place in at)]
    series = dict.fromkeys(row["series"] for row in rows)
    return Table(head, [[one, *(f"{found[one, place]:.2f}" for place in at)] for one in series])


def _facts(facts: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [[name, _plain(fact["value"]), fact["source"]] for name, fact in facts.items()]
    return Table(["what", "value", "source"], rows)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _machine(result: Mapping[str, Any]) -> str:
    platform, unit = result["platform"], result["unit"]
    rates = ", ".join(f"{4 * rate * unit['clock_hz'] / 1e9:.1f} GB/s {d}" for d, rate in unit["values_per_cycle"].items())
    places = {
        AT_DMA: f"{unit['cdus']} at the DMA engine",
        AT_CACHE: f"one at each of {platform['partitions']} partitions of the cache",
    }
    where = places[platform["placement"]]
    return (
        f"GPU: {platform['flops_per_s'] / 1e12:.2f} Tflop/s and {platform['memory_bytes_per_s'] / 1e9:.0f} GB/s reached; link "
        f"{platform['link_bytes_per_s'] / 1e9:g} GB/s each way; crossbar port {platform['port_bytes_per_s'] / 1e9:.1f} GB/s.\n"
        f"CDUs: {where}, clock {unit['clock_hz'] / 1e6:.0f} MHz; an array of {unit['cdus']} takes {rates} "
        f"of float32. From {unit['source']}."
    )


def _headlines(result: Mapping[str, Any]) -> list[str | Table]:
    """Return JPEG-ACT's mean speed-ups beside those of its paper."""
    rows = []
    for over, key in _OVER.items():
        found = result["speedups"].get(over, {}).get("jpeg-act")
        if found is not None:
            values = [value for name, value in found.items() if name != "mean"]
            between = f"{min(values):.2f} to {max(values):.2f}"
            rows.append([TITLES[over], f"{found['mean']:.2f}", between, f"{result['published'][key]} ({key})"])
    if not rows:
        return []
    efficiency = result["gist_efficiency_at_published"]
    gist = (
        f"GIST is modelled with kernels at the full rate of the memory. JPEG-ACT would be "
        f"{result['published']['compression']} times as fast as GIST if these kernels reached {efficiency or 0:.0%} of it."
    )
    table = Table(["JPEG-ACT over", "here, mean", "range", "published, over prior"], rows)
    return ["### JPEG-ACT beside its paper's headlines", table, "" if efficiency is None else gist]


def _network(network: Mapping[str, Any]) -> list[str | Table]:
    """Return a table of the times of a step with each method."""
    rows = []
    for name, found in network["methods"].items():
        times = (found["seconds"], found["forward_seconds"], found["compute_seconds"], found["overhead_seconds"])
        waiting = (found["stalls"]["link"], found["stalls"]["cdu"])
        rate = "" if found["ratio"] is None else f"{found['ratio']:.2f}"
        moved = found["bytes_moved"][COMPRESS] + found["bytes_moved"][DECOMPRESS]
        rows.append([TITLES[name], *(f"{1e3 * t:.1f}" for t in (*times, *waiting)), f"{moved / 1e9:.2f}", rate])
    head = ["ms", "step", "forward", "own work", "on the GPU", "wait: link", "wait: CDU side", "GB moved", "ratio"]
    title = f"### {network['title']}, batch {network['batch']}, {network['saved_bytes'] / 1e9:.2f} GB saved"
    return [title, Table(head, rows)]


def _ratios(result: Mapping[str, Any]) -> list[str | Table]:
    """Ratios of the codecs, a table per family of networks."""
    parts: list[str | Table] = ["## Ratios", f"From {result['ratios']['source']}."]
    for family, table in result["ratios"]["models"].items():
        keys = list(dict.fromkeys(key for sums in table.values() for key in sums))
        known = {codec: sums for codec, sums in table.items() if codec in THROUGH_CDUS or codec == "gist"}
        rows = [[codec, *(f"{sums[key]:.2f}" if key in sums else "" for key in keys)] for codec, sums in known.items()]
        parts.append(Table([family, *keys], rows))
    return parts
