"""``cdu formal``: proofs of properties of the generated Verilog, and their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_tools.errors import UserError
from cdu_tools.files import make_folder
from cdu_tools.progress import Progress, Silent
from cdu_tools.report import Report

from cdu_verif.formal import solver, user_properties
from cdu_verif.formal.proof import Property
from cdu_verif.proofs import campaign, catalog


@dataclass(frozen=True)
class ProofSettings:
    """Settings of proofs.

    Raises ConfigError for unknown names, UserError for a page without marks, MissingToolError without a solver.

    Parameters
    ----------
    config
        Configuration of all blocks.
    folder
        Folder in which the solvers work.
    blocks
        Names of the blocks; all if empty.
    name
        Name of the properties to prove; all if None.
    page
        Markdown page that also receives the number of proofs by kind, with the table of all proofs beside it.
    modules
        Folder with modules of properties of the user, which are proven of the whole unit in place of the properties of blocks.
    """

    config: CduConfig
    folder: Path
    blocks: Sequence[str] = ()
    name: str | None = None
    page: Path | None = None
    modules: Path | None = None

    def __post_init__(self) -> None:
        if self.modules is not None and (self.blocks or self.page is not None):
            raise UserError("--properties are those of the whole unit: use neither --block nor --table with it")
        if not self.properties:
            if self.modules is not None:
                raise ConfigError(f"--property {self.name!r} is no property of --properties {self.modules}: leave it out")
            raise ConfigError(f"nothing to prove: {', '.join(self.blocks)} has no proofs itself; use cdu verify, or its parts")
        if self.page is not None:
            campaign.check_page(self.page)
        solver.find_programs()

    @property
    def properties(self) -> list[Property]:
        """Return the properties in the order of their blocks."""
        if self.modules is not None:
            found = user_properties.properties(self.modules, self.config)
            return [one for one in found if self.name in (None, one.name)]
        return catalog.properties(self.config, self.blocks, self.name)


def prove_blocks(settings: ProofSettings, command: str, progress: Progress | None = None) -> Report:
    """Prove all properties, as many at a time as there are processors (:func:`cdu_verif.proofs.campaign.report`)."""
    shown = progress or Silent()
    shown.say(f"{len(settings.properties)} properties")

    def show(proof: campaign.Proof) -> None:
        state = "proven" if proof.verdict.proven else "NOT PROVEN"
        shown.say(f"{state:10} {proof.what.label:56} {proof.seconds:6.1f} s")

    proofs = campaign.run(settings.properties, make_folder(settings.folder), show)
    if settings.page is not None:
        campaign.put_table(settings.page, proofs, command, catalog.properties(settings.config))
    return campaign.report(proofs, command)
