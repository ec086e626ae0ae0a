"""A callback of transformers' ``Trainer`` that compresses activations while a training loss is computed.

>>> trainer = Trainer(..., callbacks=[CompressionCallback("sfpr")])  # doctest: +SKIP
"""

from __future__ import annotations

import base64
import io
import json
from contextlib import ExitStack
from functools import partial, wraps
from typing import Any, cast

import torch
from cdu_spec.modes import JPEG_GMC
from cdu_tools.errors import UserError

from actcodec.codecs import Codec
from actcodec.integrations.run import LOGGED, CompressedRun, check_framework
from actcodec.policies.policy import Policy
from actcodec.saved.call_stack import calling
from actcodec.saved.statistics import Statistics

check_framework("transformers")
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments  # noqa: E402
from transformers.trainer_callback import ExportableState  # noqa: E402


class CompressionCallback(TrainerCallback, ExportableState):
    """Compress tensors that ``compute_loss`` saves in training steps; evaluation is unchanged.

    The backward pass and the optimizer run outside the context. An exception, Ctrl-C included, ends it. Policies receive the
    epoch. With every loss the ``Trainer`` logs ``ratio_of_everything``. The policy's state is saved in ``trainer_state.json``
    of each checkpoint (that of the first process, if there are several) and restored by ``resume_from_checkpoint``.

    Parameters
    ----------
    codec, options
        As in :func:`~actcodec.training.compress_activations`. With ``restore_callback_states_from_checkpoint=True`` the
        ``Trainer`` makes callbacks anew, which requires names and plain values here.
    """

    def __init__(self, codec: str | Policy | Codec = JPEG_GMC, **options: Any) -> None:
        self._run = CompressedRun(codec, **options)
        self._end = ExitStack()

    @property
    def statistics(self) -> Statistics | None:
        """Statistics of the last forward pass; None before the first."""
        return self._run.statistics

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Implement :class:`TrainerCallback`."""
        self._end.close()  # a training that an exception has ended
        self._run.begin(kwargs["model"])
        name, entries = type(self).__name__, cast(dict[str, Any], state.stateful_callbacks)
        saved = entries.get(name) if state.global_step else None
        # The Trainer needs an entry, which a checkpoint of a run without this callback lacks.
        entries[name] = self.state()
        if saved is not None:
            self._run.load_state_dict(_decoded(saved["attributes"]["policy"]))
        self._compress(calling(Trainer))

    def _compress(self, trainer: Any) -> None:
        """Wrap the method ``compute_loss`` of one Trainer in the context while it trains."""
        if trainer is None:
            raise UserError("no Trainer of transformers calls this callback: give it to one as callbacks=[...]")
        mine, compute_loss = vars(trainer), trainer.compute_loss
        # A function that the user has put in its place is restored afterwards.
        self._end.callback(partial(mine.__setitem__ if "compute_loss" in mine else mine.pop, "compute_loss", compute_loss))

        @wraps(compute_loss)
        def compressed(*args: Any, **kwargs: Any) -> Any:
            if not torch.is_grad_enabled():  # evaluation
                return compute_loss(*args, **kwargs)
            self._run.open()
            try:
                return compute_loss(*args, **kwargs)
            finally:
                self._run.close()

        mine["compute_loss"] = compressed

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Implement :class:`TrainerCallback`."""
        self._run.compression.policy.set_epoch(int(state.epoch))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Implement :class:`TrainerCallback`."""
        self._run.step_ends()

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Implement :class:`TrainerCallback`. Adds the ratio to the history, and to the logs that later callbacks get."""
        logs = kwargs.get("logs", {})
        ratio = self._run.ratio() if "loss" in logs else None
        if ratio is not None:
            logs[LOGGED] = state.log_history[-1][LOGGED] = ratio

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Implement :class:`TrainerCallback`."""
        self._end.close()

    def state(self) -> dict[str, Any]:
        """Implement :class:`ExportableState`."""
        arguments = {"codec": self._run.codec, **self._run.options}
        try:
            json.dumps(arguments)
        except TypeError:
            arguments = {}
        return {"args": arguments, "attributes": {"policy": _encoded(self._run.state_dict())}}


def _encoded(state: dict[str, Any]) -> str:
    """Encode a state as text, for JSON."""
    memory = io.BytesIO()
    torch.save(state, memory)
    return base64.b64encode(memory.getvalue()).decode()


def _decoded(text: str) -> dict[str, Any]:
    """Decode a state, on the CPU."""
    found: dict[str, Any] = torch.load(io.BytesIO(base64.b64decode(text)), map_location="cpu", weights_only=True)
    return found
