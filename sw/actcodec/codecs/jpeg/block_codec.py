"""Common parts of the codecs of 8x8 DCT blocks: the table in use, and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from cdu_spec import dqt as tables
from cdu_spec.dqt_file import SUFFIX, read_table
from cdu_tools.errors import UserError

from actcodec.golden.block_shapes import has_blocks

#: Name of the stepwise schedule: optL in the first epochs, then optH.
OPT_LH = "optLH"


class BlockCodec:
    """Base class of codecs with an option ``dqt``, listed before :class:`~actcodec.codecs.codec.Codec` among their bases."""

    name: str
    dqt: str | Sequence[int]

    def _check_table(self) -> None:
        """Read the table if it is a file; raise UserError for an unknown or bad one. Called before all other methods."""
        self._epoch = 0
        self._given = self._table_of_option()

    def _table_of_option(self) -> str | tables.Table:
        """Return the name of a known table, or divisors."""
        if isinstance(self.dqt, str) and self.dqt.endswith(SUFFIX):
            return read_table(Path(self.dqt))
        if self.dqt == OPT_LH:
            return OPT_LH
        try:
            found = tables.divisors(self.dqt)
        except ValueError as error:
            if isinstance(self.dqt, (list, tuple)):
                raise UserError(str(error)) from None
            raise UserError(f"unknown quantisation table {self.dqt!r}: use {OPT_LH}, {tables.DQT_HELP}") from None
        return self.dqt if isinstance(self.dqt, str) else found

    def set_epoch(self, epoch: int) -> None:
        """Set the number of epochs that are over, which selects the table of a schedule; other tables do not change."""
        self._epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return {"epoch": self._epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        self._epoch = state["epoch"]

    @property
    def table(self) -> str | tables.Table:
        """Return the table in use: its name, or its 64 divisors."""
        if self._given != OPT_LH:
            return self._given
        return "optL" if self._epoch < tables.LH_SWITCH_EPOCH else "optH"

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether ``shape`` is (N, C, H, W) without zero extents."""
        return len(shape) == 4 and prod(shape) > 0

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether ``shape`` is (N, C, H, W) with W >= 8 and N * C * H >= 8."""
        return has_blocks(shape)

    def _check_shape(self, shape: Sequence[int]) -> None:
        if not self.takes(shape):
            raise UserError(f"{self.name} does not take a tensor of shape {tuple(shape)}: use sfpr, or shape (N, C, H, W)")
