"""Faults in the places at which a packet is written, which the proof finds."""

import re
from dataclasses import replace

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.blocks import memory_writer
from cdu_verif.formal import solver
from cdu_verif.formal.proof import prove
from tools_here import needs_provers

#: Changes of the Verilog, and the assertions that they violate.
FAULTS = {
    "the burst stays open behind an empty last word": (
        r"(assign _\d+_ = _\d+_) \| begun;",
        r"\1;",
        "open",
    ),
    "the burst stays open behind the last word of a segment": (
        r"(assign i__payload_\d+__last = over) \| whole;",
        r"\1;",
        "ends_with_segment",
    ),
    "bytes behind the segment are written": (r"(assign there = _\d+_ \? level) : count;", r"\1 : level[3:0];", "no_further"),
    "a piece is as long as its word": (r"(assign _\d+_ = _\d+_ \?) segments__payload\[43:40\] :", r"\1 4'h8 :", "whole_piece"),
}


@needs_provers
@pytest.mark.parametrize("fault", FAULTS)
def test_the_proof_of_places_finds_a_fault(tmp_path, fault):
    pattern, replacement, violated = FAULTS[fault]

    def mutate(text):
        faulty, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, f"nothing matches {pattern}"
        return faulty

    (places,) = [one for one in memory_writer.RECORD.properties(CduConfig()) if one.name == "places"]
    # From reset on, so that the violation occurs.
    verdict = prove(replace(places, method=replace(places.method, kind=solver.BOUNDED, depth=9)), tmp_path, mutate)
    assert not verdict.proven
    assert verdict.message.startswith("violated")
    assert violated in re.findall(r"words_in_segments\.(\w+)", verdict.message)
