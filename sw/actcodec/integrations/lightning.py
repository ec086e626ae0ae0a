"""A callback of Lightning's ``Trainer``: activations are compressed from the start of a batch to its backward pass.

>>> trainer = Trainer(..., callbacks=[CompressionCallback("sfpr")])  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cdu_spec.modes import JPEG_GMC

from actcodec.codecs import Codec
from actcodec.integrations.run import LOGGED, CompressedRun, check_framework
from actcodec.policies.policy import Policy
from actcodec.saved.statistics import Statistics

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    # Two packages contain Lightning: use the one that is imported, or else the one that is installed.
    _MODULES = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}
    _NAME, *_ = [
        *(name for name in _MODULES if name in sys.modules),
        *(name for name in _MODULES if find_spec(name) is not None),
        *_MODULES,
    ]
    check_framework(_NAME)
    Callback = import_module(_MODULES[_NAME]).Callback


class CompressionCallback(Callback):
    """Compress tensors that the forward pass of each training batch saves; validation is unchanged.

    The backward pass and the optimizer run outside the context; with manual optimization it opens again after a backward pass.
    An exception, Ctrl-C included, ends it. Policies receive the epoch. ``ratio_of_everything`` is logged with every batch. The
    state of the policy is saved in Lightning's checkpoints and restored by ``fit(ckpt_path=...)``.

    Parameters
    ----------
    codec, options
        As in :func:`~actcodec.training.compress_activations`.
    """

    def __init__(self, codec: str | Policy | Codec = JPEG_GMC, **options: Any) -> None:
        self._run = CompressedRun(codec, **options)

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the last forward pass; None before the first."""
        return self._run.statistics

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Implement :class:`Callback`."""
        self._run.begin(pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Implement :class:`Callback`."""
        self._run.compression.policy.set_epoch(trainer.current_epoch)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Implement :class:`Callback`."""
        self._run.open()

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Any) -> None:
        """Implement :class:`Callback`."""
        self._run.close()

    def on_after_backward(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Implement :class:`Callback`. With manual optimization another loss may follow."""
        if not pl_module.automatic_optimization:
            self._run.open()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Implement :class:`Callback`."""
        self._run.close()
        self._run.step_ends()
        ratio = self._run.ratio()
        if ratio is not None:
            pl_module.log(LOGGED, ratio)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Implement :class:`Callback`. A batch that the module skips, with the rest of its epoch, has no end of its own."""
        self._run.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Implement :class:`Callback`."""
        self._run.close()

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`Callback`."""
        return self._run.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Implement :class:`Callback`."""
        self._run.load_state_dict(state_dict)
