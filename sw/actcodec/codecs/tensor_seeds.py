"""Seeds of the tensors that a codec compresses: different for each call, the same when a run is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdu_spec.affine import MAX_SEED
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole

#: 2**32 divided by the golden ratio: consecutive multiples are spread over all seeds.
_GOLDEN = 0x9E3779B9


class TensorSeeds:
    """Sequence of seeds, 0 to 2**32 - 1, that does not repeat within 2**32 seeds.

    Parameters
    ----------
    seed
        Seed of the sequence, 0 to 2**32 - 1; UserError otherwise.
    salt
        Number that separates sequences of one seed (of several codecs in one policy).
    """

    def __init__(self, seed: int, salt: int) -> None:
        if not is_whole(seed, 0, MAX_SEED):
            raise UserError(f"seed = {seed!r} is not allowed: use 0 to {MAX_SEED}")
        self._seed, self._salt = seed, salt
        self.restart(0)

    def restart(self, run: int) -> None:
        """Restart with the sequence of run number ``run``."""
        self._base = _mix(_mix(_mix(self._seed) + self._salt) + run & MAX_SEED)
        self._run, self._number = run, 0
        self._returned: list[int] = []

    def next(self) -> int:
        """Return the seed of the next tensor."""
        if self._returned:
            return self._returned.pop()
        seed = _mix(self._base + self._number * _GOLDEN)
        self._number += 1
        return seed

    def give_back(self, seed: int) -> None:
        """Let :meth:`next` return the seed of a tensor that is compressed again."""
        self._returned.append(seed)

    def state_dict(self) -> dict[str, Any]:
        """Return the run, and the number of the next tensor."""
        return {"run": self._run, "number": self._number}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a sequence of the same seed and salt."""
        self.restart(state["run"])
        self._number = state["number"]


def _mix(value: int) -> int:
    """Permute 32-bit numbers so that every bit depends on every other (the finaliser of MurmurHash3, Appleby)."""
    value &= MAX_SEED
    value = (value ^ value >> 16) * 0x85EBCA6B & MAX_SEED
    value = (value ^ value >> 13) * 0xC2B2AE35 & MAX_SEED
    return value ^ value >> 16
