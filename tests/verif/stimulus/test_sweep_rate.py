"""The rate of a small unit, as a sweep measures it: generated, built and simulated."""

import json

from cdu_spec.config import CduConfig
from cdu_verif.stimulus.sweep_rate import Rate
from tools_here import needs_verilator

pytestmark = needs_verilator


def test_a_row_passes_per_cycle():
    config = CduConfig("small", modes=("brc",))
    rate = Rate(seed=2)
    (what,) = rate.whats(config)
    assert what == {"config": config.to_dict() | {"name": "tiny"}, "seed": 2}
    found = rate.run(json.loads(json.dumps(what)), "")
    # One CDU takes 8 values per cycle; a little is lost at both ends of a job.
    for way in ("compress", "decompress", "least"):
        assert 7.5 < found[way] <= 8
    assert {(row["direction"], row["mode"]) for row in found["measurements"]} == {("compress", "brc"), ("decompress", "brc")}
    assert all(row["bytes"] * 8 == row["values"] for row in found["measurements"])
