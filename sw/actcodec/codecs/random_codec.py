"""Base of codecs that draw random numbers: every tensor has its own seed, and a run can be repeated or continued."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actcodec.codecs.codec import Codec
from actcodec.codecs.tensor_seeds import TensorSeeds


class RandomCodec(Codec):
    """Codec with a sequence of seeds for its tensors."""

    _seeds: TensorSeeds

    def restart(self, seed: int) -> None:
        """Implement :class:`Codec`."""
        self._seeds.restart(seed)

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`Codec`."""
        return self._seeds.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Implement :class:`Codec`."""
        self._seeds.load_state_dict(state)
