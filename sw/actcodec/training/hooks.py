"""``compress_activations``: a training step whose saved activations are compressed between forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
import torch.utils.checkpoint
from cdu_spec.bitstream import JPEG_GMC
from cdu_tools.errors import UserError
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from actcodec.codecs import Codec
from actcodec.golden.sfpr import NONFINITE_POLICIES
from actcodec.policies.catalog import policy as policy_of
from actcodec.policies.policy import EXACT, CodecFactory, Policy
from actcodec.saved.forms import Exact
from actcodec.saved.kept import Saved
from actcodec.saved.operations import NOT_TRACED, untraced
from actcodec.saved.statistics import Statistics
from actcodec.training.compression import RAISE, SATURATE, Compression, naming
from actcodec.training.session import Session

_DEFEATS_CHECKPOINT = (
    "compress_activations is inside a function of torch.utils.checkpoint: what the function saves is kept, compressed, and not "
    "computed again; open the context around the checkpoint to have both"
)


@contextmanager
def compress_activations(
    model: nn.Module,
    codec: str | Policy | Codec = JPEG_GMC,
    *,
    measure_error: bool = False,
    codec_factory: CodecFactory | None = None,
    nonfinite: str | None = None,
    **options: Any,
) -> Iterator[Statistics]:
    """Compress what autograd saves while the context is open; gradients come from the reconstructions.

    >>> import torch, actcodec
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    >>> with actcodec.compress_activations(model, "jpeg-act", S=1.125) as stats:
    ...     loss = model(torch.rand(4, 1, 18, 18)).sum()
    >>> loss.backward()
    >>> stats.ratio > 4
    True

    The model is not changed and nothing global is: the context works by ``torch.autograd.graph.saved_tensors_hooks`` and a
    ``TorchFunctionMode``, both of this thread only. Backward may run outside the context, on any thread, and more than once.
    Under ``no_grad`` nothing is saved, so nothing is packed. Of nested contexts the innermost one packs.

    Kept exactly: parameters and whatever is only a rearranged or converted copy of one, buffers, statistics of
    normalisation layers, integers, boolean masks and dropout masks (one bit per value), factors that stand for several values
    of the other one, masks of an attention, what a checkpoint around a part of the model saves, tensors of rank 0 and 1,
    subclasses of Tensor, what is saved by operations whose gradients would not bear an error (:mod:`actcodec.saved.needs`),
    and what the policy leaves exact. As these share memory with the model, changing one in place before
    backward raises, as it does without hooks. Compressed tensors are copies, so that changing the original does not matter.

    Unless the policy leaves out such ``companions`` (``none`` does), no more than the shape is kept of the input of a pool that
    no other operation wants the values of, the indices of a max pool take as many bits as its windows have positions, and float
    masks and inputs of activations that are linear within a few regions (ReLU6, clamp) one bit per value; no gradient changes
    by it.

    A tensor that two operations save is kept once, also when they see its memory in two shapes (views, transposes, slices of a
    quarter or more): it is compressed in the shape of the first, and the others see the reconstruction so. When its first user
    needed only signs (ReLU) and a later one needs values, the values replace the signs for both, unless the policy keeps the
    signs beside them (``keep_signs``) and the values' codec does not keep zeros apart itself.

    Parameters
    ----------
    model
        Its parameters and buffers are recognised; its module names go to the policy and the statistics.
    codec
        Name of a policy (:data:`~actcodec.training.POLICY_NAMES`: mostly that of its main codec); a :class:`Policy`; or a codec
        object for every activation that fits it.
    measure_error
        Decompress at once and record the relative error of every tensor.
    codec_factory
        ``factory(name, **options)`` makes the codecs of a named policy; ``actcodec.codec`` unless given.
    nonfinite
        Tensors with NaN or infinity, and others whose values a codec cannot hold: ``exact`` (the default) keeps them as they
        are and warns once, so that an overflow reaches the gradients, where a GradScaler finds it; ``raise`` raises in forward;
        ``saturate`` is the option of codecs that have it.
    options
        Options of the named codec; ``keep_signs=True`` with any: a bit more per value of a ReLU, for gradients without the
        error of values that were rounded to zero.

    Warns inside a function of ``torch.utils.checkpoint``, which the context would keep from saving memory.

    Raises UserError for unknown codecs and options. In forward, a codec's other errors pass through.
    """
    if torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg=NOT_TRACED)
    if untraced(_in_checkpoint)():
        warnings.warn(_DEFEATS_CHECKPOINT, stacklevel=3)
    if nonfinite not in (None, EXACT, *NONFINITE_POLICIES):
        raise UserError(f"nonfinite = {nonfinite!r} is not allowed: use {EXACT}, {RAISE} or {SATURATE}")
    if nonfinite == SATURATE:
        options["nonfinite"] = SATURATE
    policy = policy_of(codec, codec_factory, **options)
    if nonfinite is None and policy.origin is not None:
        nonfinite = policy.origin.options.get("nonfinite")
    session = Session(model, Compression(policy, measure_error=measure_error, strict=nonfinite == RAISE))
    with session.tracker, saved_tensors_hooks(untraced(partial(_pack, session)), untraced(_unpack)):
        yield session.statistics
    session.close()


def _pack(session: Session, x: Tensor) -> Saved:
    """Pack hook: what the graph holds in place of a tensor that autograd saves."""
    with _PlainTorch():
        return session.pack(x)


def _unpack(saved: Saved) -> Tensor:
    """Unpack hook: the tensor for backward; the same values however often it is called."""
    form = saved.form
    if isinstance(form, Exact):
        return form.tensor()
    with _PlainTorch(), torch.no_grad(), naming("" if saved.record is None else saved.record.name):
        return form.tensor()


def _in_checkpoint() -> bool:
    """Whether a checkpoint's own hooks are those that the context is about to take the place of."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None and hooks[0].__module__ == torch.utils.checkpoint.__name__


class _PlainTorch:
    """While entered: torch without function modes and autocast, which must not reach into a codec's arithmetic."""

    def __enter__(self) -> None:
        self._contexts: list[AbstractContextManager[Any]] = [torch._C.DisableTorchFunction()]
        self._contexts += [torch.autocast(kind, enabled=False) for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *raised: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*raised)
