"""Sweeps: the space, the tasks and the processes that carry them out, and Pareto fronts."""

import base64
import json
import os
import sys
import zlib
from dataclasses import fields

import pytest
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.config_texts import text_of
from cdu_synth.sweep import pareto, space
from cdu_synth.sweep.hardware import Area, Elaboration
from cdu_synth.sweep.run import KeptTrials, run
from cdu_synth.sweep.sweep_space import SweepSettings
from cdu_synth.sweep.task import Trial, perform
from cdu_synth.sweep.workers import ClusterWorkers, LocalWorkers
from cdu_tools.errors import UserError

#: Work that fails, or takes its process with it, when it is told to; workers import it as a module.
SQUARE = """
import os
from dataclasses import dataclass

@dataclass(frozen=True)
class Square:
    name: str = "square"

    def versions(self):
        return {"tool": "1"}

    def run(self, what, attachment):
        if what["x"] == 13:
            raise ValueError("unlucky")
        if what["x"] == 66:
            os._exit(1)
        return {"y": what["x"] ** 2, "text": attachment, "process": os.getpid()}
"""


class Seen:
    """An observer that remembers."""

    def __init__(self):
        self.rounds, self.ended = [], []

    def begin(self, what, total, kept):
        self.rounds.append((what, total, kept))

    def done(self, task, outcome):
        self.ended.append(task.what["x"])


@pytest.fixture
def square(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "squares.py").write_text(SQUARE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    import squares

    yield lambda x, versions=None: Trial(squares.Square(), versions or {"tool": "1"}, {"x": x}, f"x={x}", f"<{x}>")
    sys.modules.pop("squares")


def carry_out(tasks, folder, jobs=2):
    seen = Seen()
    with LocalWorkers(jobs) as workers:
        outcomes = run(tasks, workers, KeptTrials(folder), seen)
    return [outcomes[task.key] for task in tasks], seen


def test_every_parameter_can_be_varied():
    for field in fields(CduConfig):
        if field.name != "name":
            default = text_of(getattr(CduConfig(), field.name))
            (point,), _ = space.points(CduConfig(), space.parse([f"{field.name}={default}"]))
            assert point.config == CduConfig()
            assert point.parameters == {field.name: default}


def test_engine_and_clocks_of_a_unit_are_in_its_hardware():
    varied = space.parse(["dma_bits=0,64", "own_clocks=none|registers"])
    points, _ = space.points(CduConfig(modes=("brc",), reset_kind="async"), varied)
    for block, built in (("array", ["array", "clocked_array", "dma_array", "clocked_array"]), ("dct", ["dct"] * 4)):
        assert [what["block"] for point in points for what in Elaboration(block).whats(point.config)] == built
    (what,) = Elaboration("array").whats(points[2].config)
    made = Elaboration("array").run(what, "")
    assert Area("array").what(made["sha256"], made["block"])["block"] == "dma_array"
    assert "module cdu_dma_array" in zlib.decompress(base64.b64decode(made["packed"])).decode()


def test_all_combinations_in_order_without_those_that_cannot_be():
    varied = space.parse(["modes = jpeg-act | sfpr, sfpr+zvc", "cdus=2,9"])
    points, skipped = space.points(CduConfig("base"), varied)
    assert [(point.config.modes, point.config.cdus) for point in points] == [(("jpeg-act",), 2), (("sfpr", "sfpr+zvc"), 2)]
    assert points[1].parameters == {"modes": "sfpr,sfpr+zvc", "cdus": "2"}
    assert [one.parameters["cdus"] for one in skipped] == ["9", "9"]
    assert skipped[0].reason == "cdus = 9 is not allowed: use 1 to 8"


def test_one_configuration_is_one_point():
    points, skipped = space.points(CduConfig(), space.parse(["modes=sfpr,brc|brc,sfpr"]))
    assert [point.config.modes for point in points] == [("sfpr", "brc")]
    assert [one.reason for one in skipped] == ["the same configuration is a point already"]


def test_a_sample_is_a_part_of_the_space_and_the_same_for_a_seed():
    varied = space.parse(["const_bits=8,9,10,11,12,13", "pass1_bits=0,1,2,3,4", "cdus=1,2,3,4,5,6,7,8"])
    every = [point.config for point in space.points(CduConfig(), varied)[0]]
    assert len(every) == 240
    some = [point.config for point in space.points(CduConfig(), varied, 7, seed=3)[0]]
    assert len(set(some)) == 7
    assert some == [config for config in every if config in some]
    assert some == [point.config for point in space.points(CduConfig(), varied, 7, seed=3)[0]]
    assert some != [point.config for point in space.points(CduConfig(), varied, 7, seed=4)[0]]


def test_a_space_from_a_file(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('cdus = [1, 2]\nrounding = ["trunc"]\nmodes = [["jpeg-act"], ["sfpr", "brc"]]\n')
    expected = {"cdus": ["1", "2"], "rounding": ["trunc"], "modes": ["jpeg-act", "sfpr,brc"]}
    assert space.read(path) == expected == space.parse(["cdus=1,2", "rounding=trunc", "modes=jpeg-act|sfpr,brc"])


@pytest.mark.parametrize("text", ["cdus", "cdus=", "cdus=1,,2", "=1", "modes=|sfpr"])
def test_malformed_values_are_refused(text):
    with pytest.raises(UserError, match=r"is not of the form|is not a parameter"):
        space.parse([text])


def test_unknown_parameters_and_files_are_refused(tmp_path):
    for text in ("lanes=1,2", "name=a,b"):
        with pytest.raises(
            ConfigError, match="is not a parameter that can be varied: use cdus, coders, completions, const_bits"
        ):
            space.parse([text])
    with pytest.raises(UserError, match="cdus is varied twice"):
        space.parse(["cdus=1", "cdus=2"])
    with pytest.raises(UserError, match="cannot read the space"):
        space.read(tmp_path / "none.toml")
    wrong = tmp_path / "wrong.toml"
    for content in ("cdus = 1", "cdus = []", 'modes = ["sfpr"]', "cdus = [[1]]"):
        wrong.write_text(content)
        with pytest.raises(UserError, match="is not an array of its values"):
            space.read(wrong)


def test_tasks_run_once_and_are_kept(square, tmp_path):
    tasks = [square(2), square(3), square(2)]
    outcomes, seen = carry_out(tasks, tmp_path / "points")
    assert [outcome.result["y"] for outcome in outcomes] == [4, 9, 4]
    assert outcomes[0].result["text"] == "<2>"
    assert os.getpid() not in {outcome.result["process"] for outcome in outcomes}
    assert seen.rounds == [("square", 2, 0)]
    assert sorted(seen.ended) == [2, 3]
    files = {path.name: json.loads(path.read_text()) for path in (tmp_path / "points").iterdir()}
    assert set(files) == {f"{task.key}.json" for task in tasks}
    assert files[f"{tasks[1].key}.json"]["what"] == {"x": 3}

    again, seen = carry_out([*tasks, square(4)], tmp_path / "points")
    assert [outcome.result for outcome in again[:3]] == [outcome.result for outcome in outcomes]
    assert (seen.rounds, seen.ended) == ([("square", 3, 2)], [4])


def test_half_a_result_is_none(square, tmp_path):
    carry_out([square(5)], tmp_path)
    (path,) = tmp_path.glob("square-*.json")
    path.write_text(path.read_text()[:-20])
    (outcome,), seen = carry_out([square(5)], tmp_path)
    assert seen.ended == [5]
    assert outcome.result["y"] == 25


def test_other_versions_are_other_results_and_no_worker_pretends(square, tmp_path):
    new = square(2, {"tool": "2"})
    assert new.key != square(2).key
    with pytest.raises(UserError, match=r"^worker \S+ has tool 1 in place of 2: install"):
        perform(new.work, new.versions, new.what, new.attachment)


def test_a_failure_stops_nothing_and_is_not_kept(square, tmp_path):
    (good, bad), _ = carry_out([square(2), square(13)], tmp_path)
    assert good.result["y"] == 4
    assert bad.result is None
    assert bad.message == "ValueError: unlucky"
    assert len(list(tmp_path.glob("square-*"))) == 1


def test_a_process_that_dies_takes_no_other_task_with_it(square, tmp_path):
    outcomes, seen = carry_out([square(x) for x in (1, 2, 66, 3, 4, 5)], tmp_path)
    assert [outcome.result and outcome.result["y"] for outcome in outcomes] == [1, 4, None, 9, 16, 25]
    assert "the process of the worker ended" in outcomes[2].message
    assert sorted(seen.ended) == [1, 2, 3, 4, 5, 66]


def test_no_scheduler_is_one_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("cdu_synth.sweep.workers._CONNECT_SECONDS", 1)
    with pytest.raises(UserError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .*start one with") as caught:
        ClusterWorkers("tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)


def test_figures_follow_from_what_was_measured():
    area = {"ge": 900.0, "flip_flops": 7, "critical_path_ns": 2.0, "mhz": 500.0, "leakage_uw": None}
    rate = {"compress": 15.0, "decompress": 16.0, "least": 9.0}
    ratio = {"ratio": 6.0, "bytes_per_value": 0.5, "relative_error": 0.1, "bytes_original": 1, "bytes_compressed": 1}
    found = pareto.figures(area, rate, ratio)
    assert found["gvalues_per_second"] == 7.5
    assert found["ge_per_value_per_cycle"] == 60
    assert "leakage_uw" not in found
    assert found["compress_values_per_cycle"] == 15
    assert set(pareto.figures(area, None, ratio)) == {
        *("ge", "flip_flops", "critical_path_ns", "mhz"),
        *("ratio", "bytes_per_value", "relative_error"),
    }


def test_the_front_is_what_nothing_beats():
    points = [
        {"ge": 10, "ratio": 2},  # smallest
        {"ge": 12, "ratio": 2},  # larger for nothing
        {"ge": 20, "ratio": 5},
        {"ge": 20, "ratio": 5},  # as good as the one before
        {"ge": 20, "ratio": 4},
        {"ge": 30, "ratio": 6},
        {"ge": 1},
    ]
    assert pareto.front(points, ("ge", "ratio")) == [True, False, True, True, False, True, False]
    assert pareto.front(points, ("ratio", "ge")) == pareto.front(points, ("ge", "ratio"))
    assert pareto.axes("ge, ratio") == ("ge", "ratio")
    for text in ("ge", "ge,speed", "ge,ratio,mhz"):
        with pytest.raises(UserError, match=f"axes '{text}' are not allowed: use two of ge,"):
            pareto.axes(text)


def test_a_point_that_the_block_is_not_built_with_is_left_out():
    space = {"cdus": ["1", "2", "4"]}
    points, skipped = SweepSettings(CduConfig(), space, block="distributor").points
    assert [point.config.cdus for point in points] == [2, 4]
    assert [one.reason for one in skipped] == ["block distributor is built with another value of cdus"]
    assert len(SweepSettings(CduConfig(), space, block="collector").points[0]) == 3
    with pytest.raises(ConfigError, match="block distributor is built with another value of cdus"):
        SweepSettings(CduConfig(), {"cdus": ["1"]}, block="distributor")
    points, skipped = SweepSettings(CduConfig(), {"completions": ["0", "8"]}, block="dma_array").points
    assert [point.config.completions for point in points] == [0]
    assert skipped[0].reason.startswith("block dma_array cannot be built: completions = 8 is not allowed")
