"""Fused attention: recompute the sums of its softmax from the queries and keys that backward sees.

Fused kernels save queries Q, keys K and values V, and for each row of the softmax the logarithm of its sum, L; backward
computes the probabilities again, ``exp(scale Q K^T + mask - L)`` (FlashAttention: Dao et al., NeurIPS 2022, section 3.1). If L
comes from the exact Q and K, but Q and K are rebuilt, the error of a logit acts through its exponential: rows do not sum to
one, and may overflow. If L comes from the rebuilt ones, the gradient is that of a softmax whose logits are slightly off.
"""

from __future__ import annotations

from inspect import signature

import torch
from torch import Tensor
from torch.nn import functional as F

from actcodec.saved.operations import Operation
from actcodec.saved.views import Holder, codec_of

_FUSED = "scaled_dot_product_attention"
_MODULE = "multi_head_attention_forward"
#: Rank of queries, keys, values and masks of fused attention.
ATTENTION_RANK = 4
#: Position of the probability of a dropout among the arguments of fused attention.
_DROPOUT = 4
#: Size of temporaries as a multiple of the logits of the rows that are computed at a time.
_TEMPORARIES = 3


class RowSums:
    """L of the rebuilt queries and keys: a :class:`~actcodec.saved.forms.Form`.

    Parameters
    ----------
    sums
        L as it is saved, of shape (B, H, rows or more); rows beyond those of the queries, and rows that are masked entirely,
        are left as they are.
    query, key
        Holders of Q of shape (B, H, rows, D) and K of shape (B, a divisor of H, columns, D).
    mask
        Holder of the mask, which is added to the logits; None without one.
    scale, causal
        The operation's factor of the logits; True if a row sees no column beyond its own number.
    """

    def __init__(self, sums: Tensor, query: Holder, key: Holder, mask: Holder | None, scale: float, causal: bool) -> None:
        self._sums = sums.detach()
        self._query, self._key, self._mask = query, key, mask
        self._scale, self._causal = scale, causal

    @classmethod
    def of(cls, x: Tensor, operation: Operation) -> RowSums | None:
        """Return the form of ``x``, which ``operation`` made for itself and saves; None if it is not L, or Q and K are
        exact.
        """
        # Autograd saves arguments in the order of their names, results after them: [attn_mask], key, query, value, L, output.
        if x.ndim != ATTENTION_RANK - 1 or len(operation.packed) < len(("key", "query", "value")):
            return None
        *others, (key_shape, key), (query_shape, query), (value_shape, _) = operation.packed
        if {len(key_shape), len(query_shape), len(value_shape)} != {ATTENTION_RANK} or value_shape[:-1] != key_shape[:-1]:
            return None
        batch, heads, rows, _ = query_shape
        if tuple(x.shape[:2]) != (batch, heads) or x.shape[2] < rows or heads % key_shape[1]:
            return None
        if all(_lossless(holder) for holder in (query, key)):
            return None
        # The module computes Q and K from tensors of its own, of lower ranks.
        mask = others[-1][1] if others and (operation.function == _FUSED or len(others[-1][0]) == ATTENTION_RANK) else None
        return cls(x, query, key, mask, *_scale_and_causal(operation))

    @property
    def nbytes(self) -> int:
        """Bytes of L as it was saved."""
        return self._sums.numel() * self._sums.element_size()

    def tensor(self) -> Tensor:
        """Compute L with no more memory than Q and K take."""
        query, key = (holder.form.tensor() for holder in (self._query, self._key))
        mask = None if self._mask is None else self._mask.form.tensor()
        _, heads, rows, features = query.shape
        if mask is None and key.shape[1] == heads and self._is_torchs_own(query):
            return self._by_torch(query, key)
        repeats = heads // key.shape[1]
        key = (key if repeats == 1 else key.repeat_interleave(repeats, 1)).to(self._sums.dtype).mT
        columns = key.shape[-1]
        sums = self._sums.clone()
        step = max(1, rows * features // (_TEMPORARIES * columns))
        numbers = torch.arange(max(rows, columns), device=query.device)
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            logits = (query[:, :, part].to(key.dtype) @ key).mul_(self._scale)
            if mask is not None:
                logits += mask.expand(*logits.shape[:2], rows, columns)[:, :, part]
            if self._causal:
                logits.masked_fill_(numbers[:columns] > numbers[part, None], -torch.inf)
            rebuilt, saved = torch.logsumexp(logits, -1), sums[:, :, part]
            sums[:, :, part] = torch.where(rebuilt.isfinite(), rebuilt, saved)
        return sums

    def _is_torchs_own(self, query: Tensor) -> bool:
        """Return whether torch's kernel for the CPU made the sums, which has as many as there are rows."""
        return query.device.type == "cpu" and self._sums.shape[2] == query.shape[2]

    def _by_torch(self, query: Tensor, key: Tensor) -> Tensor:
        """Compute L by the kernel that saved it; the keys stand for the values, whose product is not needed."""
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        rebuilt = kernel(query, key, key, is_causal=self._causal, scale=self._scale)[1]
        return torch.where(rebuilt.isfinite(), rebuilt, self._sums)


def without_dropout(operation: Operation) -> bool:
    """Return whether an operation is fused attention without dropout, which saves no mask of its own."""
    return operation.function == _FUSED and operation.argument(_DROPOUT, "dropout_p", 0.0) == 0.0


def _lossless(holder: Holder) -> bool:
    codec = codec_of(holder.form)
    return codec is None or codec.lossless


def _scale_and_causal(operation: Operation) -> tuple[float, bool]:
    """Return the factor of the logits, and whether the kernel masks them as causal, from the arguments of the operation."""
    if operation.function == _FUSED:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, operation.args, strict=False)) | operation.kwargs
        scale = given.get("scale")
        return given["query"].shape[-1] ** -0.5 if scale is None else scale, bool(given.get("is_causal"))
    bound = signature(F.multi_head_attention_forward).bind(*operation.args, **operation.kwargs)
    bound.apply_defaults()
    given = bound.arguments
    features = given["embed_dim_to_check"] // given["num_heads"]
    # With a padding mask the module merges the causal mask into the mask that it passes on.
    return features**-0.5, given["is_causal"] and given["key_padding_mask"] is None
