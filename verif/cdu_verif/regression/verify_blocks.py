"""``cdu verify``: a regression of the generated Verilog against the golden model, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools.errors import UserError
from cdu_tools.files import make_folder
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_verif.regression import plan, regression, results, shares
from cdu_verif.regression.regression import RunSettings


@dataclass(frozen=True)
class VerifySettings:
    """Settings of a verification. UserError and ConfigError for impossible ones.

    Parameters
    ----------
    config
        Configuration of all blocks; parameters that are not ``pinned`` are varied where a block depends on them.
    how
        Simulator, level, tests and further settings.
    blocks
        Names of the blocks; all if empty.
    pinned
        Names of parameters that keep their values.
    training
        Whether a network is trained through the whole unit instead.
    """

    config: CduConfig
    how: RunSettings
    blocks: Sequence[str] = ()
    pinned: Sequence[str] = ()
    training: bool = False

    def __post_init__(self) -> None:
        if self.how.steps is not None and not self.training:
            raise UserError("--steps belongs to --training")
        if self.training and (self.blocks or self.how.tests):
            raise UserError("--training runs the whole unit: it takes neither --block nor --test")
        if self.blocks and self.left_out:
            raise ConfigError("; ".join(f"block {name} has nothing to run: {why}" for name, why in self.left_out.items()))
        regression.check_tests(self.runs, self.how.tests)

    @property
    def runs(self) -> list[plan.PlannedRun]:
        """Return the blocks with their parameters."""
        if self.training:
            return [plan.training_run(self.config, self.pinned)]
        return plan.runs(self.config, self.blocks, self.how.full, self.pinned)

    @property
    def left_out(self) -> dict[str, str]:
        """Return the blocks that have no run with these parameters, each with the reason."""
        return {} if self.training else plan.left_out(self.config, self.blocks, self.how.full, self.pinned)


def verify_blocks(settings: VerifySettings, progress: Progress | None = None) -> Report:
    """Generate, build and simulate all runs and report: results.xml (JUnit), report.md and report.json.

    ``failed`` of the report has every test that fails and the command that repeats it.
    """
    shown, runs, how = progress or Silent(), settings.runs, settings.how
    if how.level == regression.PAIRS and not how.tests and not settings.training:
        runs = shares.shared(runs)
    make_folder(how.folder)
    for name, why in settings.left_out.items():
        shown.say(f"block {name} is left out: {why}")
    shown.say(f"{len(runs)} simulations with {how.simulator}, seed {how.seed}")
    tests, covered = regression.regress(runs, how, lambda test: shown.say(f"{test.status:4}  {test.group:44} {test.name}"))
    command = how.repeat + "".join(f" --block {name}" for name in settings.blocks) + " --training" * settings.training
    # A selection of the tests cannot hit all bins.
    bins = {} if how.tests else plan.cover_bins(runs)
    return results.report(tests, command, covered, bins, runs)
