"""The KV cache of a transformer in a codec: keys by channel, values by token (KIVI, arXiv 2402.02750), the newest as they are.

It is for inference: no gradient passes through what is compressed.

>>> cache = CompressedCache("mxint8")  # doctest: +SKIP
>>> model.generate(tokens, past_key_values=cache)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, cast

import torch
from cdu_spec.mx import MX_VALUES
from cdu_tools.errors import MissingToolError, UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.codecs import Codec, codec
from actcodec.codecs.compressed import Packed
from actcodec.study.models.library import version

try:
    version("transformers")
except MissingToolError as error:
    raise MissingToolError(f"the cache is one of transformers: {error}") from None
from transformers.cache_utils import Cache, DynamicLayer

#: Layout of a block: tokens of one channel, or channels of one token.
CHANNEL, TOKEN = "channel", "token"


@dataclass(frozen=True)
class _Order:
    """The order in which a codec gets keys or values, (batch, heads, tokens, channels); its blocks are consecutive values."""

    by: str
    group: int

    def apply(self, states: Tensor) -> Tensor:
        """Order the tokens of a group by channel, or keep the states as they are; contiguous."""
        if self.by == CHANNEL:
            states = states.reshape(*states.shape[:-2], -1, self.group, states.shape[-1]).transpose(-1, -2)
        return states.contiguous()

    def undo(self, ordered: Tensor) -> Tensor:
        """Invert :meth:`apply`."""
        return ordered.transpose(-1, -2).flatten(-3, -2) if self.by == CHANNEL else ordered


class CompressedLayer(DynamicLayer):
    """Keys and values of one layer, each (batch, heads, tokens, channels).

    Whole groups of tokens are compressed, the oldest first, once at least ``recent`` tokens are newer; they are not compressed
    again. A call returns the earlier tokens as kept, and its own tokens exactly.

    Parameters
    ----------
    codecs
        Codecs of keys and of values.
    orders
        Orders of keys and of values.
    recent
        Least number of newest tokens that are kept as they are.
    """

    is_croppable = False

    def __init__(self, codecs: tuple[Codec, Codec], orders: tuple[_Order, _Order], recent: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._codecs, self._orders, self._recent = codecs, orders, recent
        self._group = orders[0].group
        self._packed: list[tuple[Packed, Packed]] = []
        self._packed_tokens = 0

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens, and return those of all tokens; UserError if gradients would be lost."""
        if torch.is_grad_enabled() and (key_states.requires_grad or value_states.requires_grad):
            raise UserError(
                "no gradient passes through a compressed cache: use torch.no_grad(), or transformers' DynamicCache in training"
            )
        before = self._states()
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states[..., :0, :], value_states[..., :0, :]
        keys, values = _joined(self._newest, (key_states, value_states))
        count = max(0, (keys.shape[-2] - self._recent) // self._group * self._group)
        if count:
            self._pack(keys[..., :count, :], values[..., :count, :])
        # A view would keep the memory of the compressed tokens alive.
        self.keys, self.values = keys[..., count:, :].clone(), values[..., count:, :].clone()
        return _joined(before, (key_states, value_states)) if before else (key_states, value_states)

    @property
    def nbytes(self) -> int:
        """Bytes kept: compressed tokens with headers, and the newest tokens."""
        newest = sum(states.nbytes for states in self._newest) if self.is_initialized else 0
        return newest + self.packed_bytes

    @property
    def packed_bytes(self) -> int:
        """Bytes of compressed tokens."""
        return sum(part.nbytes for pair in self._packed for part in pair)

    def whole_bytes(self, *, packed: bool = False) -> int:
        """Return the uncompressed bytes of all tokens, or of the ``packed`` ones."""
        if not self.is_initialized:
            return 0
        token = sum(prod(states.shape[:-2]) * states.shape[-1] * states.element_size() for states in self._newest)
        return token * (self._packed_tokens if packed else self.get_seq_length())

    def get_seq_length(self) -> int:
        """Return the number of tokens."""
        return self._packed_tokens + super().get_seq_length()

    def reset(self) -> None:
        """Forget all tokens."""
        self._packed.clear()
        self._packed_tokens = 0
        super().reset()

    def crop(self, tokens_to_remove: int) -> None:
        """Raise UserError: tokens cannot be removed."""
        raise UserError("a compressed cache gives up no tokens: generate without an assistant model")

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the sequences of the batch; compressed tokens are compressed anew in the new order."""
        self._select(lambda states: states.index_select(0, beam_idx.to(states.device)))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Select some sequences of the batch."""
        self._select(lambda states: states[indices])

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every sequence of the batch."""
        self._select(lambda states: states.repeat_interleave(repeats, dim=0))

    def _select(self, chosen: Callable[[Tensor], Tensor]) -> None:
        if not self.is_initialized:
            return
        self.keys, self.values = map(chosen, self._newest)
        pairs, self._packed, self._packed_tokens = self._packed, [], 0
        for pair in pairs:
            self._pack(*map(chosen, self._unpacked(pair)))

    def _pack(self, keys: Tensor, values: Tensor) -> None:
        ordered = [order.apply(states) for order, states in zip(self._orders, (keys, values), strict=True)]
        key, value = (one.compress(states) for one, states in zip(self._codecs, ordered, strict=True))
        self._packed.append((key, value))
        self._packed_tokens += keys.shape[-2]

    def _unpacked(self, pair: tuple[Packed, Packed]) -> tuple[Tensor, Tensor]:
        key, value = (
            order.undo(one.decompress(part)) for one, order, part in zip(self._codecs, self._orders, pair, strict=True)
        )
        return key, value

    def _states(self) -> tuple[Tensor, Tensor] | None:
        """Return all keys and values; None if there are none."""
        if not self.is_initialized:
            return None
        return _joined(*map(self._unpacked, self._packed), self._newest)

    @property
    def _newest(self) -> tuple[Tensor, Tensor]:
        """Return the tokens that are not compressed."""
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values


def _joined(*parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Concatenate keys and values along the tokens."""
    return torch.cat([keys for keys, _ in parts], dim=-2), torch.cat([values for _, values in parts], dim=-2)


class CompressedCache(Cache):
    """A cache that compresses all but the newest tokens, for ``past_key_values`` of transformers' models.

    Parameters
    ----------
    codec
        Name of a codec with blocks of consecutive values, such as ``mxint8``, ``mxfp4`` or ``nvfp4``, or a codec object.
    values
        The codec of the values, if it is another one than that of the keys.
    key_blocks, value_blocks
        Values of a block: ``channel`` (tokens of one channel) or ``token`` (channels of one token).
    group
        Tokens that are compressed together, at least 1: with ``channel`` a multiple of the values of a block.
    recent
        Tokens that are kept as they are, at least; up to ``group - 1`` more wait for the others of their group.
    options
        Of codecs that are given by name.

    Raises UserError for invalid values. Layers with sliding windows and assisted decoding are not supported; beam search works,
    and compresses compressed tokens anew.
    """

    def __init__(
        self,
        codec: str | Codec = "mxint8",
        values: str | Codec | None = None,
        *,
        key_blocks: str = CHANNEL,
        value_blocks: str = TOKEN,
        group: int = MX_VALUES,
        recent: int = MX_VALUES,
        **options: Any,
    ) -> None:
        for name, given in (("key_blocks", key_blocks), ("value_blocks", value_blocks)):
            if given not in (CHANNEL, TOKEN):
                raise UserError(f"{name} = {given!r} is not allowed: use {CHANNEL} or {TOKEN}")
        for name, count, least in (("group", group, 1), ("recent", recent, 0)):
            if not is_whole(count, least):
                raise UserError(f"{name} = {count!r} is not allowed: use a whole number, {least} or more")
        codecs = (_codec(codec, options), _codec(codec if values is None else values, options))
        orders = (_Order(key_blocks, group), _Order(value_blocks, group))
        # The class is only called.
        layer = cast(type[CompressedLayer], partial(CompressedLayer, codecs, orders, recent))
        super().__init__(layer_class_to_replicate=layer)

    @property
    def nbytes(self) -> int:
        """Bytes that all layers keep."""
        return sum(layer.nbytes for layer in self._layers)

    @property
    def ratio(self) -> float:
        """Bytes of all keys and values in the dtype in use, over the bytes kept; 1 for an empty cache."""
        whole = sum(layer.whole_bytes() for layer in self._layers)
        return whole / self.nbytes if self.nbytes else 1.0

    @property
    def packed_ratio(self) -> float:
        """The same ratio for compressed tokens, which a long cache approaches; 1 if there are none."""
        packed = sum(layer.packed_bytes for layer in self._layers)
        return sum(layer.whole_bytes(packed=True) for layer in self._layers) / packed if packed else 1.0

    @property
    def _layers(self) -> Sequence[CompressedLayer]:
        return cast(Sequence[CompressedLayer], self.layers)


def _codec(given: str | Codec, options: dict[str, Any]) -> Codec:
    if not isinstance(given, (str, Codec)):
        raise UserError(f"a {type(given).__name__} is no codec: use a name, such as mxint8, or a codec object")
    return codec(given, **options) if isinstance(given, str) else given
