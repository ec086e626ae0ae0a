"""Sign-off of blocks: stages like OpenTitan's, with rules computed from the results of commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: Percentage of the points of a kind, after waivers, and of the mutants, that the last stage requires.
ENOUGH = 95.0
NOTHING, LAST = "V0", "V3"


@dataclass(frozen=True)
class Facts:
    """Results of one block's verification."""

    failing: Sequence[str]  #: runs in which a test fails, or that do not build
    warned: Sequence[str]  #: runs whose Verilog the lint warns of
    smoke: bool | None  #: whether a test plays its cases in Amaranth's simulator; None for units without cases of their own
    missing_sets: Sequence[str]  #: parameter sets of the level quick that were not run
    missing_bins: Sequence[str]  #: bins of its cover points that were not hit
    unproven: Sequence[str]  #: properties of the catalogue that no table lists as proven
    proves_function: bool  #: whether the catalogue has a property about order or arithmetic
    percent: Mapping[str, float]  #: by kind, after waivers
    killed: float | None  #: percentage of mutants killed; None if not measured


@dataclass(frozen=True)
class Rule:
    """One condition of a stage."""

    stage: str
    text: str  #: for the page
    missing: Callable[[Facts], str]  #: returns what is missing, in a few words; empty if the rule is fulfilled


def _few(what: str, names: Sequence[str]) -> str:
    """Return the names, or their number if there are many."""
    if not names:
        return ""
    return f"{what}: {', '.join(names)}" if len(names) <= 3 else f"{what}: {len(names)}, such as {names[0]}"


def _low(facts: Facts) -> str:
    low = [f"{kind} {percent:.1f} %" for kind, percent in facts.percent.items() if percent < ENOUGH]
    return f"coverage: {', '.join(low)}" if low else ""


def _mutants(facts: Facts) -> str:
    if facts.killed is None:
        return "mutants: not measured"
    return f"mutants: {facts.killed:.1f} % killed" if facts.killed < ENOUGH else ""


RULES = (
    Rule("V1", "every run builds, and all its tests pass", lambda facts: _few("fails", facts.failing)),
    Rule("V1", "`verilator --lint-only -Wall` has no warning", lambda facts: _few("lint", facts.warned)),
    Rule(
        "V1",
        "a test plays its cases in Amaranth's simulator, except for whole units",
        lambda facts: "no test in Amaranth's simulator" if facts.smoke is False else "",
    ),
    Rule("V2", "all parameter sets of the level quick have run", lambda facts: _few("not run", facts.missing_sets)),
    Rule("V2", "every bin of cover points is hit", lambda facts: _few("bins", facts.missing_bins)),
    Rule("V2", "every property of the block is proven (`cdu formal`)", lambda facts: _few("not proven", facts.unproven)),
    Rule(
        "V2",
        "one of them is about order or arithmetic",
        lambda facts: "" if facts.proves_function else "no property of order or arithmetic",
    ),
    Rule(LAST, f"each kind of coverage is at least {ENOUGH:.0f} % after waivers", _low),
    Rule(LAST, f"at least {ENOUGH:.0f} % of its mutants are killed", _mutants),
)


def rules() -> str:
    """Return the rules of each stage as a list in Markdown."""
    stages = dict.fromkeys(rule.stage for rule in RULES)
    return "\n".join(f"- **{name}**: {'; '.join(rule.text for rule in RULES if rule.stage == name)}." for name in stages)


def stage(facts: Facts) -> tuple[str, list[str]]:
    """Return the last stage whose rules and earlier stages' rules are all fulfilled, and what the next stage misses."""
    reached = NOTHING
    for name in dict.fromkeys(rule.stage for rule in RULES):
        missing = [text for rule in RULES if rule.stage == name and (text := rule.missing(facts))]
        if missing:
            return reached, missing
        reached = name
    return reached, []
