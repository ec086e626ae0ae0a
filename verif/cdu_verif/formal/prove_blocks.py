"""``cdu formal``: properties of the generated Verilog, from what is asked for to the report of their proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdu_spec.config import CduConfig, ConfigError
from cdu_tools.files import make_folder
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_verif.formal import campaign, catalog, solver
from cdu_verif.formal.proof import Property


@dataclass(frozen=True)
class ProofSettings:
    """What is proven. ConfigError for unknown names, UserError for a page without marks, MissingToolError without a solver.

    Parameters
    ----------
    config
        Of all blocks.
    folder
        Where the solvers work.
    blocks
        Their names; all when empty.
    name
        Only properties that are called so.
    page
        Markdown page whose table takes the rows as well.
    """

    config: CduConfig
    folder: Path
    blocks: Sequence[str] = ()
    name: str | None = None
    page: Path | None = None

    def __post_init__(self) -> None:
        if not self.properties:
            raise ConfigError("nothing to prove")
        if self.page is not None:
            campaign.MARKS.check(self.page)
        solver.find_programs()

    @property
    def properties(self) -> list[Property]:
        """In the order of their blocks."""
        return catalog.properties(self.config, self.blocks, self.name)


def prove_blocks(settings: ProofSettings, command: str, progress: Progress | None = None) -> Report:
    """Prove everything, as much at a time as there are processors; see :func:`cdu_verif.formal.campaign.report`."""
    shown = progress or Silent()
    shown.say(f"{len(settings.properties)} properties")

    def show(proof: campaign.Proof) -> None:
        state = "proven" if proof.verdict.proven else "NOT PROVEN"
        shown.say(f"{state:10} {proof.what.label:56} {proof.seconds:6.1f} s")

    proofs = campaign.run(settings.properties, make_folder(settings.folder), show)
    if settings.page is not None:
        campaign.put_table(settings.page, proofs, command, catalog.properties(settings.config))
    return campaign.report(proofs, command)
