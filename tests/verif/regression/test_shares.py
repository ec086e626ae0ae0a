"""Level ``pairs``: each run of a block has a share of the tests, and together they find what all tests find."""

from functools import partial
from itertools import product

import pytest
from cdu.delivery import generator
from cdu.delivery.blocks import BLOCKS
from cdu_spec.config import CONFIGS, CduConfig
from cdu_verif.blocks import record
from cdu_verif.mutation import campaign, mutants
from cdu_verif.regression import plan, regression, shares, test_names
from cdu_verif.regression.verify_blocks import VerifySettings, verify_blocks
from cdu_verif.simulation.simulators import Simulation
from tools_here import needs_verilator

TINY = CONFIGS["tiny"]


def test_every_value_meets_its_test_and_every_run_its_tests():
    names = {f"{test}/pattern={pattern}" for test, pattern in product(("corners", "random"), "abc")} | {"reset", "rate/mode=x"}
    found = shares.shares([names] * 4)
    assert set().union(*found) == names
    for own in found:
        assert {name.partition("/")[0] for name in own} == {"corners", "random", "reset", "rate"}
        assert sum("pattern" in name for name in own) == 2
    assert len({tuple(own) for own in found}) == 3


def test_parameters_that_are_not_shared_stay_together():
    names = {f"rate/direction={way}/mode={mode}" for way, mode in product(("in", "out"), "xyz")}
    found = shares.shares([names] * 2)
    assert found == [sorted(name for name in names if f"direction={way}" in name) for way in ("in", "out")]


def test_what_one_run_alone_has_stays_there():
    """The mode of a parameter set is tried in both directions where no other set has it."""
    common = {f"rate/direction={way}/mode=x" for way in ("in", "out")}
    alone = {f"rate/direction={way}/mode=y" for way in ("in", "out")}
    found = shares.shares([common, common | alone])
    assert [len(common & set(own)) for own in found] == [1, 1]
    assert alone <= set(found[1])
    assert shares.shares([common]) == [sorted(common)]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_runs_of_a_block_have_all_of_its_tests_together(block):
    runs = plan.runs(CduConfig(), [block], full=False)
    every = [test_names.names(block, run.config, record(block).modules, skipped=False) for run in runs]
    found = [run.tests for run in shares.shared(runs)]
    assert set().union(*found) == set().union(*every)
    assert len(runs) == 1 or sum(map(len, found)) < sum(map(len, every))
    for own, names in zip(found, every, strict=True):
        assert set(own) <= names
        assert {name.partition("/")[0] for name in own} == {name.partition("/")[0] for name in names}


def test_what_a_parameter_set_skips_is_in_none_of_its_shares():
    """Modules that benches share are read anew for each parameter set, also behind one that has more."""
    modules = record("control").modules
    assert "shift_tables" in test_names.names("control", TINY, modules, skipped=False)
    without = CduConfig(modes=("sfpr", "bypass", "mx"))
    assert "shift_tables" not in test_names.names("control", without, modules, skipped=False)
    assert "shift_tables" in test_names.names("control", without, modules)


@needs_verilator
def test_a_regression_runs_the_shares(tmp_path):
    settings = VerifySettings(TINY, regression.RunSettings(tmp_path, level="pairs"), ["inverse_shift_quantizer"])
    tests = verify_blocks(settings).content["results"]
    assert {test["status"] for test in tests} <= {"pass", "skip"}
    runs = shares.shared(settings.runs)
    assert sorted((test["group"], test["name"]) for test in tests) == sorted(
        (run.label, name) for run in runs for name in run.tests
    )


@pytest.mark.campaign  # three builds, and tens of simulations
@needs_verilator
@pytest.mark.parametrize("block", ["collector", "zvc_decoder", "shift_quantizer"])
def test_shares_find_the_faults_that_all_tests_find(tmp_path, block):
    """The share of a run finds each mutant of its parameter set that all tests find."""
    missed, found = [], 0
    for turn, run in enumerate(shares.shared(plan.runs(TINY, [block], full=False))):
        folder = tmp_path / str(turn)
        netlists = folder / "netlists"
        netlists.mkdir(parents=True)
        generated = generator.kept(run.config, block)
        paths = {path.suffix: path.resolve() for path in generated.write(folder)}
        chosen = mutants.choose(paths[".v"], generated.top, netlists, 16, seed=2)
        file = mutants.selectable(chosen, generated.manifest["ports"], generated.top, netlists)
        simulation = Simulation(file, generated.top, folder, "verilator")
        simulation.build()
        failing = partial(campaign._failing_test, simulation, block, paths[".json"], folder, 1)
        for mutant in chosen:
            if all_find := failing(mutant.number):
                found += 1
                if not failing(mutant.number, run.tests):
                    missed.append((run.label, mutant.line, all_find))
    assert found > 16
    assert not missed
    print(f"{block}: {found} mutants found by all tests and by shares")
