"""Common part of the callbacks for all frameworks: one compression for all steps of a training, its statistics, its state."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from cdu_spec.modes import JPEG_GMC
from cdu_tools.errors import MissingToolError, UserError
from torch import nn

from actcodec.codecs import Codec
from actcodec.policies.policy import Policy
from actcodec.saved.statistics import Statistics
from actcodec.study.models.library import version
from actcodec.training.activation_compression import ActivationCompression, compress_activations

#: Name under which frameworks log the ratio of all that autograd keeps but weights, of the steps since the last log.
LOGGED = "ratio_of_everything"
_NOTHING_SAVED = (
    "a training step saved nothing within the context, so that nothing is compressed: its forward pass runs on other threads "
    "(nn.DataParallel; use one process for each device), or elsewhere than this callback looks for it"
)


def check_framework(name: str) -> None:
    """Raise MissingToolError, with a remedy, if a framework is not installed or does not import."""
    try:
        version(name)
    except MissingToolError as error:
        raise MissingToolError(f"a callback for {name}: {error}") from None


class CompressedRun:
    """The compression of one model, made anew for each training; a policy object that is given continues.

    Parameters
    ----------
    codec, options
        As in :func:`~actcodec.training.compress_activations`.
    """

    def __init__(self, codec: str | Policy | Codec = JPEG_GMC, **options: Any) -> None:
        self.codec, self.options = codec, options
        self._compression: ActivationCompression | None = None
        self._saved: Mapping[str, Any] | None = None
        self._warned = False
        self._forget()

    def _forget(self) -> None:
        self._original = self._kept = 0

    def begin(self, model: nn.Module) -> None:
        """Begin a training, or continue from a loaded state. UserError for invalid options."""
        self._compression = compress_activations(model, self.codec, **self.options)
        saved, self._saved = self._saved, None
        if saved is not None:
            self._compression.load_state_dict(saved)
        self._forget()

    @property
    def compression(self) -> ActivationCompression:
        """The compression of this training; UserError before the first."""
        if self._compression is None:
            raise UserError("no training has begun: the callback compresses from the first step on")
        return self._compression

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the last forward pass; None before the first."""
        return None if self._compression is None else self._compression.statistics

    def open(self) -> None:
        """Begin a forward pass."""
        self.compression.enable()

    def close(self) -> None:
        """End a forward pass; without effect if none has begun on this thread."""
        if self._compression is None or not self._compression.enabled:
            return
        self._compression.disable()
        kept = self._compression.statistics
        assert kept is not None, "it was enabled"
        original, compressed = kept.bytes_of_everything
        self._original += original
        self._kept += compressed

    def step_ends(self) -> None:
        """Warn, once, if the step saved nothing that could have been compressed."""
        if not self._original and not self._warned:
            self._warned = True
            warnings.warn(_NOTHING_SAVED, stacklevel=2)

    def ratio(self) -> float | None:
        """Return the ratio of the steps since the last call; None if nothing was saved."""
        ratio = self._original / self._kept if self._kept else None
        self._forget()
        return ratio

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the policy; empty before a training."""
        return {} if self._compression is None else self._compression.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the state of the policy, now or when the training begins."""
        if self._compression is None:
            self._saved = state
        else:
            self._compression.load_state_dict(state)
