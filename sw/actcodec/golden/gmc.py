"""GMC, the group-mask code of quantised coefficients: a head byte and a body of up to 80 bytes for each block of 64.

:mod:`cdu_spec.gmc` has the tables; ``docs/reference/bitstream.md``, section 3, defines the order of the bits. Any bytes whose
heads form a chain that ends with the payload are blocks: content that no encoder writes decodes, too; missing bits at the end
of a body count as zeros, and bits after its last coefficient are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from cdu_spec import gmc
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, VALUE_BITS
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN
from torch import Tensor

from actcodec.golden.block_starts import Chain, block_starts
from actcodec.golden.checks import require
from actcodec.golden.movement import select

#: Number of blocks that are processed together, so that the memory beyond the result does not grow with it.
_PIECE_BLOCKS = 1 << 10
_GROUPS = BLOCK_SIDE // gmc.GROUP_VALUES
#: Number of bits of a word of a body, and of words from which bits are read: all that a decoder can reach, and one more.
_WORD_BITS = 32
_WORDS = gmc.MAX_WRITTEN_BODY_BYTES * 8 // _WORD_BITS + 2
_WORD_MASK = (1 << _WORD_BITS) - 1
#: Greatest magnitudes of a group in classes 0 to 6, and of DC in categories 0 to 7.
_CLASS_LIMITS = (0, *(1 << (number - 1) for number in gmc.CODED_CLASSES))
_CATEGORY_LIMITS = tuple((1 << category) - 1 for category in range(gmc.MAX_CATEGORY))


def encode(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return the payload, uint8, of blocks, and the bytes of each block, head included (1 to 77), int64 (n,).

    Takes int8 (n, 64) in payload order, where place ``8 * u + v`` has horizontal frequency u and vertical frequency v, or
    (n, 8, 8).
    """
    trailing = (BLOCK_SIDE, BLOCK_SIDE) if blocks.dim() == 3 else (BLOCK_VALUES,)
    require("blocks", blocks, (torch.int8,), trailing)
    blocks = blocks.reshape(-1, BLOCK_VALUES)
    begins = range(0, max(len(blocks), 1), _PIECE_BLOCKS)
    packed = [_packed(*_bodies(blocks[begin : begin + _PIECE_BLOCKS])) for begin in begins]
    payloads, lengths = zip(*packed, strict=True)
    return torch.cat(payloads), torch.cat(lengths)


def code_bits(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return category of DC, and bits of all codes after it without padding, int64 (n,) each, of blocks, int8 (n, 64)."""
    require("blocks", blocks, (torch.int8,), (BLOCK_VALUES,))
    begins = range(0, max(len(blocks), 1), _PIECE_BLOCKS)
    coded = [_coded(blocks[begin : begin + _PIECE_BLOCKS]) for begin in begins]
    return torch.cat([category for category, _ in coded]), torch.cat([bits[1].sum(1) for _, bits in coded])


def decode(payload: Tensor, count: int) -> Tensor:
    """Decode the ``count`` blocks of a payload to int8 (count, 8, 8) [horizontal][vertical frequency].

    Raises BitstreamError when the chain of heads does not end, after ``count`` blocks, exactly at the end of the payload. No
    byte outside the payload is ever read.
    """
    require("payload", payload, (torch.uint8,))
    return decode_at(payload, block_starts(payload, count, CHAIN)).view(-1, BLOCK_SIDE, BLOCK_SIDE)


def decode_at(payload: Tensor, starts: Tensor) -> Tensor:
    """Decode a payload of exactly the blocks that begin at ``starts``, int64 (n,), to int8 (n, 64)."""
    blocks = torch.empty(len(starts), BLOCK_VALUES, dtype=torch.int8, device=payload.device)
    ends = torch.cat((starts[1:], starts.new_tensor([payload.numel()])))
    for place in range(0, len(starts), _PIECE_BLOCKS):
        here = slice(place, place + _PIECE_BLOCKS)
        blocks[here] = _decoded(payload, starts[here], ends[here])
    return blocks


def _body_bytes(heads: Tensor) -> Tensor:
    """Return the bytes of the bodies that follow heads (integers 0 to 255)."""
    return torch.where(heads < gmc.LONG_HEAD, heads >> 3, heads - (gmc.LONG_HEAD - gmc.SHORT_BYTES - 1))


def _block_lengths(heads: Tensor) -> Tensor:
    return _body_bytes(heads[:-1]) + 1


#: Rule of the lengths of GMC's blocks.
CHAIN = Chain(gmc.MIN_BLOCK_BYTES, gmc.MAX_BLOCK_BYTES, 1, _block_lengths)


# Bits of a stream are tensors (2, n, ...): their value, first bit lowest, and their number.


def _bodies(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return category of DC, int64 (n,), and body without it, uint8 (n, 4 * words), of blocks, int8 (n, 64)."""
    category, bits = _coded(blocks)
    return category, _joined(bits)


def _coded(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return category of DC, int64 (n,), and the bits (2, n, m) of the body without it, of blocks, int8 (n, 64)."""
    x = blocks.to(torch.int64)
    dc = x[:, 0].clone()
    x[:, 0] = 0
    groups = x.view(-1, BLOCK_SIDE, _GROUPS, gmc.GROUP_VALUES)
    classes = _bucket(groups.abs().amax(3), _CLASS_LIMITS)
    category, dc_bits = _dc_bits(dc)
    class_bits = _class_bits(classes)
    following = torch.cat((class_bits[:, :, 1:], torch.zeros_like(class_bits[:, :, :1])), 2)
    columns = torch.cat((_mask_bits(groups, classes), following, _field_bits(groups, classes)), 3)
    return category, torch.cat((dc_bits[:, :, None], class_bits[:, :, 0], columns.flatten(2)), 2)


def _bucket(values: Tensor, limits: Sequence[int]) -> Tensor:
    """Return how many of ascending limits are less than each value."""
    return torch.bucketize(values, torch.tensor(limits, device=values.device))


def _dc_bits(dc: Tensor) -> tuple[Tensor, Tensor]:
    """Return the category of each DC, which is the length of its magnitude, and its bits, the sign first.

    The bits of the magnitude leave out its first one.
    """
    magnitude = dc.abs()
    category = _bucket(magnitude, _CATEGORY_LIMITS)
    low = magnitude - (1 << category >> 1)
    return category, torch.stack(((dc < 0) | low << 1, category))


def _class_bits(classes: Tensor) -> Tensor:
    """Return the code words (2, n, 8, 2) of the classes (n, 8, 2) of the groups of all columns."""
    a, b = classes.unbind(2)
    before = torch.cat((torch.zeros_like(classes[:, :1]), classes[:, :-1]), 1)
    symbols = torch.where(a > 0, a + 1, torch.where(b > 0, gmc.A_ZERO, gmc.A_BOTH_ZERO))
    first = torch.arange(BLOCK_SIDE, device=classes.device) == 0
    context_a, context_b = contexts(before, symbols, first)
    words_a = words_of(gmc.A_CODES, a.device)[:, context_a, symbols]
    words_b = words_of(gmc.B_CODES, b.device)[:, context_b, b] * (symbols != gmc.A_BOTH_ZERO)
    return torch.stack((words_a, words_b), 3)


def contexts(before: Tensor, symbols: Tensor, first: Tensor | bool) -> tuple[Tensor, Tensor]:
    """Return contexts of A and of B, from the classes (..., 2) of the column before and the symbols of A beside B.

    ``first`` marks the first columns.
    """
    context_a, context_b = before.clamp(max=gmc.LAST_CLASS_CONTEXT).unbind(-1)
    after_zero = (context_a == 0) & (context_b > 0)
    first = torch.as_tensor(first, device=before.device)
    context_a = context_a.masked_fill(after_zero, gmc.A_AFTER_ZERO).masked_fill(first, gmc.A_FIRST)
    context_b = context_b.masked_fill(first, gmc.B_FIRST).masked_fill(symbols == gmc.A_ZERO, gmc.B_BESIDE_ZERO)
    return context_a, context_b


def _mask_bits(groups: Tensor, classes: Tensor) -> Tensor:
    """Return the code words (2, n, 8, 2) of the masks of groups; none for classes without a mask."""
    masks = ((groups != 0) << torch.arange(gmc.GROUP_VALUES, device=groups.device)).sum(3)
    row, coded = (classes.clamp(1, gmc.LAST_MASK_CLASS) - 1), _is_coded(classes)
    return words_of(gmc.MASK_CODES, groups.device)[:, row, masks.clamp(min=1) - 1] * coded


def _field_bits(groups: Tensor, classes: Tensor) -> Tensor:
    """Return the bits of coefficients of groups, (2, n, 8, 2): signs and magnitudes less 1 of nonzero ones, or bytes."""
    present, classes = (groups != 0).to(torch.int64), classes[..., None]
    coded = _is_coded(classes)
    sizes = torch.where(coded, present * classes, VALUE_BITS * (classes == gmc.RAW_CLASS))
    fields = torch.where(coded, (groups < 0) | (groups.abs() - present) << 1, groups & (1 << VALUE_BITS) - 1)
    places = sizes.cumsum(3) - sizes
    return torch.stack(((fields << places).sum(3), sizes.sum(3)))


def _is_coded(classes: Tensor) -> Tensor:
    return (classes > gmc.ZERO_CLASS) & (classes < gmc.RAW_CLASS)


def _joined(bits: Tensor) -> Tensor:
    """Return the bytes (n, 4 * words) of consecutive bits (2, n, m), at most 32 each."""
    values, lengths = bits
    ends = lengths.cumsum(1)
    begins = ends - lengths
    words = torch.zeros(len(values), _WORDS, dtype=torch.int64, device=bits.device)
    placed, word = values << begins % _WORD_BITS, begins // _WORD_BITS
    words.scatter_add_(1, word, placed & _WORD_MASK).scatter_add_(1, word + 1, placed >> _WORD_BITS)
    return words.to(torch.int32).view(torch.uint8)


def _packed(category: Tensor, body: Tensor) -> tuple[Tensor, Tensor]:
    """Return payload, uint8, and lengths, int64 (n,), of blocks with these categories and bodies without them."""
    size = _used(body)
    long = (size > gmc.SHORT_BYTES) | (category == gmc.MAX_CATEGORY)
    shifted = body << gmc.CATEGORY_BITS
    shifted[:, 1:] |= body[:, :-1] >> VALUE_BITS - gmc.CATEGORY_BITS
    shifted[:, 0] |= category.to(torch.uint8)
    body = torch.where(long[:, None], shifted, body)
    size = torch.where(long, _used(body).clamp(min=gmc.SHORT_BYTES + 1), size)
    head = torch.where(long, gmc.LONG_HEAD - gmc.SHORT_BYTES - 1 + size, size << 3 | category)
    lengths = size + 1
    full = torch.cat((head[:, None].to(torch.uint8), body), 1)
    present = torch.arange(full.shape[1], device=full.device) < lengths[:, None]
    return select(full, present), lengths


def _used(body: Tensor) -> Tensor:
    """Return the bytes (n,) of each body up to the last nonzero one."""
    return ((body != 0) * torch.arange(1, body.shape[1] + 1, device=body.device)).amax(1)


def _decoded(payload: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Decode blocks with heads at ``starts`` and bodies up to ``ends`` to int8 (n, 64)."""
    heads = payload[starts].to(torch.int64)
    bits = _Bits(payload, starts + 1, ends)
    long = heads >= gmc.LONG_HEAD
    category = torch.where(long, bits.peek().bitwise_and_((1 << gmc.CATEGORY_BITS) - 1), heads & 7).clamp_(max=gmc.MAX_CATEGORY)
    bits.skip(long * gmc.CATEGORY_BITS)
    dc = _dc(bits, category)
    columns = torch.empty(len(heads), BLOCK_SIDE, BLOCK_SIDE, dtype=torch.int64, device=payload.device)
    classes = _read_classes(bits, torch.zeros(len(heads), _GROUPS, dtype=torch.int64, device=payload.device), first=True)
    for column in range(BLOCK_SIDE):
        masks = [_read_mask(bits, group) for group in classes.unbind(1)]
        following = _read_classes(bits, classes, first=False) if column < BLOCK_SIDE - 1 else classes
        groups = [_read_fields(bits, group, mask) for group, mask in zip(classes.unbind(1), masks, strict=True)]
        columns[:, column] = torch.cat(groups, 1)
        classes = following
    columns[:, 0, 0] = dc
    return columns.view(-1, BLOCK_VALUES).to(torch.int8)


class _Bits:
    """Reading position in each of n bodies, from ``starts`` to ``ends`` in a payload."""

    def __init__(self, payload: Tensor, starts: Tensor, ends: Tensor) -> None:
        places = starts[:, None] + torch.arange(_WORDS * _WORD_BITS // 8, device=payload.device)
        inside = places < ends[:, None]
        body = payload[places.clamp_(max=payload.numel() - 1)] * inside
        words = body.view(torch.int32).to(torch.int64) & _WORD_MASK
        # Each entry holds 63 bits from the start of a word, so that 32 can be taken from any bit of the word.
        self._words = words[:, :-1] | (words[:, 1:] & _WORD_MASK >> 1) << _WORD_BITS
        self._place = torch.zeros_like(starts)

    def peek(self) -> Tensor:
        """Return the next 32 bits, int64 (n,)."""
        words = self._words.gather(1, (self._place // _WORD_BITS)[:, None])[:, 0]
        return words >> self._place % _WORD_BITS & _WORD_MASK

    def skip(self, lengths: Tensor) -> None:
        """Advance by ``lengths`` bits in each body."""
        self._place += lengths


def _dc(bits: _Bits, category: Tensor) -> Tensor:
    """Read DC of blocks with these categories, saturated to int8."""
    word = bits.peek()
    bits.skip(category)
    first = 1 << category >> 1
    magnitude = first | word >> 1 & (first - 1).clamp_(min=0)
    return torch.where(word & 1 == 1, -magnitude, magnitude).clamp_(VALUE_MIN, VALUE_MAX)


def _read_classes(bits: _Bits, before: Tensor, *, first: bool) -> Tensor:
    """Read the classes (n, 2) of the groups of a column, given those of the column before."""
    context_a, _ = contexts(before, before[:, 0], first)
    symbols = _read_word(bits, gmc.A_CODES, context_a)
    _, context_b = contexts(before, symbols, first)
    b = _read_word(bits, gmc.B_CODES, context_b, symbols != gmc.A_BOTH_ZERO)
    return torch.stack(((symbols - 1).clamp_(min=0), b), 1)


def _read_mask(bits: _Bits, classes: Tensor) -> Tensor:
    """Read the masks (n,) of groups; 0 for classes without a mask."""
    coded = _is_coded(classes)
    return _read_word(bits, gmc.MASK_CODES, classes.clamp(1, gmc.LAST_MASK_CLASS) - 1, coded) + coded


def _read_fields(bits: _Bits, classes: Tensor, masks: Tensor) -> Tensor:
    """Read the coefficients (n, 4) of groups."""
    word = bits.peek()[:, None]
    raw = classes == gmc.RAW_CLASS
    present = masks[:, None] >> torch.arange(gmc.GROUP_VALUES, device=masks.device) & 1
    sizes = torch.where(raw[:, None], VALUE_BITS, present * classes[:, None])
    places = sizes.cumsum(1) - sizes
    fields = word >> places & (1 << sizes) - 1
    bits.skip(sizes.sum(1))
    magnitude = (fields >> 1) + 1
    coded = torch.where(fields & 1 == 1, -magnitude, magnitude) * present
    return torch.where(raw[:, None], fields - (fields >> VALUE_BITS - 1 << VALUE_BITS), coded)


def _read_word(bits: _Bits, codes: gmc.Codes, rows: Tensor, present: Tensor | bool = True) -> Tensor:
    """Read symbols (n,), each by a row of ``codes``; 0 where ``present`` is false."""
    table = symbols_of(codes, rows.device)
    found = table[:, rows, bits.peek() & table.shape[2] - 1] * torch.as_tensor(present, device=rows.device)
    bits.skip(found[1])
    return found[0]


@lru_cache
def words_of(codes: gmc.Codes, device: torch.device) -> Tensor:
    """Return values and lengths of code words, int64 (2, rows, symbols)."""
    values = [[gmc.number(word) for word in row] for row in codes]
    return torch.tensor([values, [[len(word) for word in row] for row in codes]], device=device)


@lru_cache
def symbols_of(codes: gmc.Codes, device: torch.device) -> Tensor:
    """Return symbol and length of the code word at the start of each string of bits, int64 (2, rows, 2**longest)."""
    return torch.tensor([gmc.lookup(row, gmc.longest(codes)) for row in codes], device=device).permute(2, 0, 1).contiguous()
