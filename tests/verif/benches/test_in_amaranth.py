"""Cases in Amaranth's simulator find what is wrong: blocks that differ a little from what their golden functions say."""

import pytest
from cdu.quantizers.shift_quantizer import ShiftQuantizer
from cdu.transform.dct import Dct
from cdu_spec.config import CduConfig
from cdu_verif.benches import in_amaranth


class Hasty(ShiftQuantizer):
    """Its results leave whether they are taken or not."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i.ready.eq(1)
        return m


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        ("shift_quantizer", lambda config: ShiftQuantizer(config.override(rounding="half_away"))),
        ("dct", lambda config: Dct(config.override(const_bits=11))),
        ("shift_quantizer", Hasty),
    ],
)
def test_a_block_that_differs_fails(block, wrong):
    with pytest.raises(AssertionError):
        in_amaranth.check_block(wrong(CduConfig()), block, CduConfig())


def test_blocks_without_streams_of_their_own_are_refused():
    with pytest.raises(ValueError, match="control has no cases of its own streams: use sfpr, "):
        in_amaranth.assert_passes("control", CduConfig())
