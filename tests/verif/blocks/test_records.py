"""Every block has a record that can be read without the golden model and without a simulator."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
from cdu.delivery.blocks import BLOCKS
from cdu_verif import blocks
from cdu_verif.cases.case import Case
from cdu_verif.regression import plan


def test_every_block_has_a_record_with_benches():
    assert set(blocks.names()) == {*BLOCKS, *blocks.parts(), *plan.WHOLE}
    assert not set(BLOCKS) & set(blocks.parts())


@pytest.mark.parametrize("name", blocks.names())
def test_benches_are_there_and_parts_have_proofs(name):
    record = blocks.record(name)
    assert all(find_spec(module) for module in record.modules)
    assert record.benches or record.streams or record.properties
    assert bool(record.cases) == ("blocks" in record.benches)


def test_records_are_read_without_golden_model_and_simulator():
    script = (
        "import sys; from cdu_verif import blocks; [blocks.record(name) for name in blocks.names()];"
        " print([name for name in ('torch', 'cocotb', 'actcodec') if name in sys.modules])"
    )
    read = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert read.stdout.strip() == "[]"


def test_unknown_names_are_refused():
    with pytest.raises(KeyError, match="no record of 'dtc': use affine_decoder, "):
        blocks.record("dtc")


def test_cases_turn_from_lane_to_lane():
    case = Case("a", {"i__0": [1], "i__1": [2], "i__2": [3]}, {"o": [4]}, turns=2)
    assert case.turned(0) == case
    assert case.turned(4).inputs == {"i__1": [1], "i__2": [2], "i__0": [3]}
    assert case.turned(4).expected == {"o": [4]}
