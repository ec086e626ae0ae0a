"""Plan of a regression: blocks and the parameters with which they are simulated."""

import pytest
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_verif.blocks import names, record
from cdu_verif.regression import plan
from cdu_verif.regression.regression import RunSettings
from cdu_verif.regression.verify_blocks import VerifySettings


def test_sets_that_what_is_pinned_makes_impossible_are_left_out():
    """Without mode jpeg-act there is no unit with its coder GMC."""
    config = CduConfig(modes=("sfpr+zvc", "brc"))
    found = plan.runs(config, ["control"], full=False, pinned=["modes"])
    without = config.override(counter_bits=0)
    assert [(run.label, run.config) for run in found] == [("control", config), ("control[counter_bits=0]", without)]
    assert "control[counter_bits=32,scale_bits=24,coders=zvc,gmc]" not in {
        run.label for run in plan.runs(config, [], full=True, pinned=["modes"])
    }
    labels = {run.label for run in plan.runs(CduConfig(), [], full=True, pinned=["modes"])}
    assert "control[counter_bits=32,scale_bits=24,coders=zvc,gmc]" in labels


def test_a_block_that_cannot_be_is_left_out_with_the_reason(tmp_path):
    config = CduConfig(completions=8)
    (name, why), *others = plan.left_out(config, [], full=True, pinned=["completions"]).items()
    assert (name, others) == ("dma_array", [])
    assert name not in {run.block for run in plan.runs(config, [], full=True, pinned=["completions"])}
    assert why.startswith("completions = 8 is not allowed with a DMA engine")
    with pytest.raises(ConfigError, match=f"^block dma_array has nothing to run: {why}$"):
        VerifySettings(config, RunSettings(tmp_path), ["dma_array", "dct"], ["completions"])
    assert not plan.left_out(CduConfig(), [], full=True)


@pytest.mark.parametrize("block", names())
def test_no_set_is_left_out_where_nothing_is_fixed(block):
    for values in (*record(block).quick, *record(block).full):
        assert CduConfig().override(**values)


@pytest.mark.parametrize(
    ("coders", "policies"),
    [(("zvc",), ["jpeg-act"]), (("gmc",), ["jpeg-gmc"]), (("zvc", "gmc"), ["jpeg-act", "jpeg-gmc"])],
)
def test_a_unit_trains_with_the_policies_that_it_has_modes_and_coders_for(coders, policies):
    assert plan.training_policies(CduConfig(coders=coders)) == policies
    every = plan.training_policies(CONFIGS["universal"].override(coders=coders))
    assert every == [*policies, "division", "actnn"]
    assert plan.training_policies(CduConfig(modes=("brc", "mx"))) == ["mxint8"]


def test_training_with_a_dma_engine_goes_through_it():
    run = plan.training_run(CONFIGS["universal"].override(dma_bits=128))
    assert run.block == "dma_unit"
    assert plan.training_policies(run.config) == plan.training_policies(CONFIGS["universal"]), "the engine runs every mode"
    assert plan.training_run(CONFIGS["universal"]).block == "unit"
