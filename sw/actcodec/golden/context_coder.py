"""Entropy coding of integers in the contexts of their neighbours: two passes, static tables, interleaved rANS streams.

Integers follow each other in rows. Chunks of :data:`CHUNK_VALUES` are cut into :data:`STREAMS` streams of equal length; all
streams of a chunk advance together, so that vectors and GPUs code them at once. In a stream, value i has neighbours: ``left``
(i - 1), ``above`` (i - reach), ``corner`` (i - reach - 1) and ``beside`` (i - reach + 1), which are zeros before its begin; the
reach is the length of a row, or 2 if that is 1 or more than :data:`MOST_REACH`.

1. A rule of :data:`RULES` predicts each value by its neighbours, and tells by an activity how well; it is the rule with the
   fewest bits in a sample. The activity, on a scale of half octaves, is the context.
2. The difference becomes a token: magnitudes below :data:`DIRECT` have one for each sign, others one for each half octave; the
   bits behind the first two of such a magnitude go into a stream of bits.
3. The first pass counts tokens in each context. Contexts next to each other that are cheaper together share a table. Tables
   have :data:`TABLE_BITS` bits.
4. The second pass codes tokens by rANS (Duda 2013): states of 32 bits, words of 16, from the last step to the first. A decoder
   reads the words of a step in the order of the streams.

``docs/methods/blpa.md`` describes the parts of the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
from cdu_spec.bitstream import BitstreamError
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.lorenzo import MAX_MAGNITUDE

#: Streams of a chunk, and least and greatest number of their values.
STREAMS, LEAST_STEPS, MOST_STEPS = 32, 128, 2048
CHUNK_VALUES = STREAMS * MOST_STEPS
#: Longest row in which the value above is a neighbour, and the reach in all others.
MOST_REACH, SHORT_REACH = 512, 2
#: Rules of prediction, in the order in which they are tried.
ZERO, LEFT, ABOVE, MEDIAN = RULES = range(4)
CONTEXTS = 12
#: Activity from which on all contexts are the same.
MOST_ACTIVITY = 63
#: Least magnitude with a token for several values, and number of tokens.
DIRECT = 16
DIRECT_BITS = DIRECT.bit_length() - 1
# Differences take up to two bits more than the integers.
TOKENS = 2 * (DIRECT + 2 * (MAX_MAGNITUDE.bit_length() + 2 - DIRECT_BITS))
TABLE_BITS, WORD_BITS = 12, 16
TABLE = 1 << TABLE_BITS
#: Least state, from which coding begins and with which decoding ends.
FIRST_STATE = 1 << WORD_BITS
#: A sample for the choice of a rule is each fourth stream of the first chunk.
SAMPLED = 4
#: Bits that an entry of a table takes, about, and bits of its length.
ENTRY_BITS, LENGTH_BITS = 9, 4
#: Bits of the mantissa by which logarithms are looked up, and of their fractions.
MANTISSA_BITS, LOG_BITS = 12, 16
_BYTE = 8

Counts = npt.NDArray[np.int64]
#: Binary logarithms of 1 to 2 in units of 2**-16. Integers decide about rules and tables, the same ones in every backend.
LOGS: Counts = np.rint(np.log2(1 + np.arange(1 << MANTISSA_BITS) / (1 << MANTISSA_BITS)) * (1 << LOG_BITS)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ContextCoded:
    """Integers after coding, without their number and the length of rows."""

    tables: Tensor  #: uint8 (bytes,): the rule and the tables, see :func:`packed_tables`
    sizes: Tensor  #: int32 (chunks, 2): words and bits of each chunk
    states: Tensor  #: int32 (streams,): bits of the states, 32 without sign, of all streams with values
    words: Tensor  #: int16 (words,): bits of the words, 16 without sign
    bits: Tensor  #: uint8 (bytes,): low bits of great magnitudes, the first one lowest

    @property
    def nbytes(self) -> int:
        """Return the bytes of all parts."""
        parts = (getattr(self, field.name) for field in fields(self))
        return sum(part.numel() * part.element_size() for part in parts)


@dataclass(frozen=True)
class Chunks:
    """Chunks of one length that follow each other."""

    first: int  #: number of the first value
    count: int  #: number of chunks
    values: int  #: number of values of each

    @property
    def steps(self) -> int:
        """Return the values of a stream; the last streams with values may have fewer."""
        return max(-(-self.values // STREAMS), LEAST_STEPS)

    @property
    def streams(self) -> int:
        """Return the streams with values of a chunk."""
        return -(-self.values // self.steps)

    @property
    def slice(self) -> slice:
        """Return which values of all they hold."""
        return slice(self.first, self.first + self.count * self.values)


def chunks_of(count: int) -> Iterator[Chunks]:
    """Yield the chunks of ``count`` values: the full ones together, and the rest."""
    full = count // CHUNK_VALUES
    if full:
        yield Chunks(0, full, CHUNK_VALUES)
    if count % CHUNK_VALUES:
        yield Chunks(full * CHUNK_VALUES, 1, count % CHUNK_VALUES)


def reach_of(width: int) -> int:
    """Return the distance of the neighbour above in rows of this length."""
    return width if 1 < width <= MOST_REACH else SHORT_REACH


def encode(values: Tensor, width: int) -> ContextCoded:
    """Encode integers in rows of ``width``: int32 of any shape, magnitudes up to 2**27. Returns parts on the same device."""
    require("values", values, (torch.int32,))
    flat, reach = values.flatten(), reach_of(width)
    groups = [(chunks, _in_steps(flat, chunks)) for chunks in chunks_of(flat.numel())]
    if not groups:
        return ContextCoded(*(flat.new_zeros(shape, dtype=kind) for shape, kind in _EMPTY))
    sample = groups[0][1][:, :1, ::SAMPLED]
    active = _active(groups[0][0], flat.device)[:, ::SAMPLED]
    rule = chosen_rule(np.stack([_counted(*_predicted(sample, rule, reach), active[:, None]) for rule in RULES]))
    predicted = [(chunks, *_predicted(steps, rule, reach)) for chunks, steps in groups]
    counts = sum(_counted(left, context, _active(chunks, flat.device)[:, None]) for chunks, left, context in predicted)
    tables = packed_tables(rule, np.asarray(counts))
    frequencies = torch.from_numpy(unpacked_tables(tables)[1]).to(flat.device)
    coded = [_coded(chunks, left, context, frequencies) for chunks, left, context in predicted]
    sizes, states, words, lengths, low = (torch.cat(parts) for parts in zip(*coded, strict=True))
    packed = torch.from_numpy(np.frombuffer(tables, dtype=np.uint8).copy()).to(flat.device)
    return ContextCoded(packed, sizes, states, words, _packed_bits(low, lengths))


def decode(coded: ContextCoded, count: int, width: int) -> Tensor:
    """Return the ``count`` integers of :func:`encode`, int32 (count,).

    Raises BitstreamError where the parts do not fit each other or end with another state than coding began with.
    """
    values = coded.words.new_zeros(count, dtype=torch.int32)
    groups = check_sizes(coded, count)
    if not groups:
        return values
    rule, frequencies = unpacked_tables(coded.tables.cpu().numpy().tobytes())
    tables = _lookups(torch.from_numpy(frequencies).to(coded.words.device))
    chunk = stream = word = bit = 0
    windows = _windows(coded.bits)
    for chunks in groups:
        sizes = coded.sizes[chunk : chunk + chunks.count].to(torch.int64)
        streams = chunks.count * chunks.streams
        starts = sizes.cumsum(0) - sizes + sizes.new_tensor([word, bit])
        states = coded.states[stream : stream + streams].view(chunks.count, chunks.streams)
        values[chunks.slice] = _decoded(chunks, rule, reach_of(width), tables, states, starts, sizes, coded.words, windows)
        chunk, stream = chunk + chunks.count, stream + streams
        word, bit = word + int(sizes[:, 0].sum()), bit + int(sizes[:, 1].sum())
    return values


def check_sizes(coded: ContextCoded, count: int) -> list[Chunks]:
    """Return the chunks of ``count`` values; raise BitstreamError unless the parts have the sizes that these need."""
    groups = list(chunks_of(count))
    chunks, streams = sum(one.count for one in groups), sum(one.count * one.streams for one in groups)
    fits = coded.sizes.shape == (chunks, 2) and coded.states.shape == (streams,) and bool((coded.sizes >= 0).all())
    words, bits = coded.sizes.sum(0, dtype=torch.int64).tolist() if fits else (0, 0)
    if not fits or (coded.words.numel(), coded.bits.numel()) != (words, -(-bits // _BYTE)):
        raise BitstreamError(
            f"corrupted stream: the parts of coded integers do not have the sizes of {count} values: keep all parts together"
        )
    return groups


def spoiled() -> BitstreamError:
    """Return the error for words that no encoder wrote."""
    return BitstreamError("corrupted stream: coded integers do not end with the state that coding began with: compress again")


def chosen_rule(counts: Counts) -> int:
    """Return the rule with the fewest bits, given the counts of tokens, int64 (rules, contexts, tokens)."""
    low = (counts.sum(1) @ _LOW_BITS) << LOG_BITS
    return int((_entropies(counts).sum(1) + low).argmin())


def packed_tables(rule: int, counts: Counts) -> bytes:
    """Return the rule and the tables of tokens with these counts, int64 (contexts, tokens).

    Bytes: the rule; two with a bit for each context that begins a table, the first one lowest; the number of tokens of each
    table. Then bits, the first one lowest: the length of each frequency, 4 bits, from 0 to 13; and of each its bits below the
    first one. Frequencies of a table have the sum 4096.
    """
    groups, begins = [counts[0]], 1
    for context in range(1, CONTEXTS):
        together = groups[-1] + counts[context]
        if _cost(together) <= _cost(groups[-1]) + _cost(counts[context]):
            groups[-1] = together
        else:
            begins |= 1 << context
            groups.append(counts[context])
    tables = [
        _normalised(group[: int(group.nonzero()[0][-1]) + 1] if group.any() else np.ones(1, np.int64)) for group in groups
    ]
    numbers = np.concatenate(tables)
    lengths = _bit_lengths(numbers)
    low = (numbers[:, None] >> np.arange(TABLE_BITS)) & 1
    fields = ((lengths[:, None] >> np.arange(LENGTH_BITS)) & 1).flatten(), low[np.arange(TABLE_BITS) < lengths[:, None] - 1]
    packed = np.packbits(np.concatenate(fields).astype(np.uint8), bitorder="little").tobytes()
    return bytes((rule, begins & 0xFF, begins >> _BYTE, *map(len, tables))) + packed


def unpacked_tables(packed: bytes) -> tuple[int, npt.NDArray[np.int32]]:
    """Return the rule and the frequencies, int32 (contexts, tokens), of :func:`packed_tables`.

    Raises BitstreamError for other bytes.
    """
    error = BitstreamError("corrupted stream: the tables of coded integers are damaged: compress again")
    head = 3
    if len(packed) <= head or packed[0] not in RULES:
        raise error
    begins = packed[1] | packed[2] << _BYTE
    groups = begins.bit_count()
    tokens = list(packed[head : head + groups])
    if not begins & 1 or begins >> CONTEXTS or len(tokens) < groups or not all(0 < many <= TOKENS for many in tokens):
        raise error
    bits = np.unpackbits(np.frombuffer(packed, np.uint8)[head + groups :], bitorder="little").astype(np.int64)
    many = sum(tokens)
    if len(bits) < many * LENGTH_BITS:
        raise error
    lengths = bits[: many * LENGTH_BITS].reshape(-1, LENGTH_BITS) @ (1 << np.arange(LENGTH_BITS))
    below = np.arange(TABLE_BITS) < lengths[:, None] - 1
    end = many * LENGTH_BITS + int(below.sum())
    if -(-end // _BYTE) * _BYTE != len(bits):
        raise error
    low = np.zeros(below.shape, np.int64)
    low[below] = bits[many * LENGTH_BITS : end]
    numbers = (low << np.arange(TABLE_BITS)).sum(1) + ((1 << lengths) >> 1)
    tables = np.zeros((groups, TOKENS), np.int32)
    tables[np.arange(TOKENS) < np.array(tokens)[:, None]] = numbers
    if (tables.sum(1) != TABLE).any():
        raise error
    return packed[0], tables[[(begins & ((2 << context) - 1)).bit_count() - 1 for context in range(CONTEXTS)]]


#: Number of low bits that each token leaves over.
_BUCKETS = np.arange(1, TOKENS + 1) // 2
_LOW_BITS: Counts = np.where(_BUCKETS < DIRECT, 0, (_BUCKETS - DIRECT) // 2 + DIRECT_BITS - 1)
#: Shapes and dtypes of the parts without values.
_EMPTY = ((0, torch.uint8), ((0, 2), torch.int32), (0, torch.int32), (0, torch.int16), (0, torch.uint8))


def _with_log(counts: Counts) -> Counts:
    """Return counts times their binary logarithms in units of 2**-16; zero for zero."""
    exponents = np.maximum(_bit_lengths(counts) - 1, 0)
    mantissas = ((counts << MANTISSA_BITS) >> exponents) & ((1 << MANTISSA_BITS) - 1)
    found: Counts = counts * ((exponents << LOG_BITS) + LOGS[mantissas])
    return found


def _entropies(counts: Counts) -> Counts:
    """Return the bits, in units of 2**-16, of tokens with these counts, int64 (..., tokens)."""
    found: Counts = _with_log(counts.sum(-1)) - _with_log(counts).sum(-1)
    return found


def _cost(counts: Counts) -> int:
    """Return the approximate bits, in units of 2**-16, of tokens with these counts, int64 (tokens,), and of their table."""
    return int(_entropies(counts)) + (ENTRY_BITS << LOG_BITS) * int(np.count_nonzero(counts))


def _normalised(counts: Counts) -> Counts:
    """Return frequencies with the sum 4096, at least 1 for what occurs; the most frequent token gets what rounding leaves."""
    occurs = counts > 0
    found = np.where(occurs, 1 + counts * (TABLE - int(occurs.sum())) // int(counts.sum()), 0)
    found[int(counts.argmax())] += TABLE - int(found.sum())
    return found


def _bit_lengths(numbers: Counts) -> Counts:
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def _in_steps(flat: Tensor, chunks: Chunks) -> Tensor:
    """Return the values of chunks by step, int32 (steps, chunks, streams); zeros fill the streams of the last chunk."""
    held = flat[chunks.slice]
    if chunks.values < STREAMS * chunks.steps:
        held = torch.cat((held, held.new_zeros(STREAMS * chunks.steps - chunks.values)))
    return held.view(chunks.count, STREAMS, chunks.steps).permute(2, 0, 1).contiguous()


def _active(chunks: Chunks, device: torch.device) -> Tensor:
    """Return where streams have values, bool (steps, streams)."""
    return torch.arange(STREAMS * chunks.steps, device=device).view(STREAMS, chunks.steps).t() < chunks.values


def _guess(rule: int, left: Tensor, above: Tensor, corner: Tensor, beside: Tensor) -> tuple[Tensor | int, Tensor]:
    """Return the prediction and the activity of neighbours, integers of one shape."""
    if rule == ZERO:
        return 0, left.abs() + above.abs()
    if rule == LEFT:
        return left, (left - above).abs()
    if rule == ABOVE:
        return above, (left - above).abs()
    least, greatest = torch.minimum(left, above), torch.maximum(left, above)
    median = (left + above - corner).clamp(least, greatest)
    return median, (left - corner).abs() + (above - corner).abs() + (above - beside).abs()


def _context(activity: Tensor) -> Tensor:
    """Return the context, int64: the exponent of one more than the activity, and the first bit behind its leading one."""
    number = activity.clamp_max(MOST_ACTIVITY) + 1
    exponent = number.to(torch.float32).frexp().exponent.to(torch.int64) - 1
    half = ((number << 1) >> exponent) & 1
    return (2 * exponent + half).clamp_max(CONTEXTS - 1)


def _predicted(steps: Tensor, rule: int, reach: int) -> tuple[Tensor, Tensor]:
    """Return differences to predictions, and contexts, int64 (steps, chunks, streams)."""
    padded = torch.cat((steps.new_zeros(reach + 1, *steps.shape[1:]), steps)).to(torch.int64)
    left, above, corner, beside = (padded[reach + 1 - back :][: len(steps)] for back in (1, reach, reach + 1, reach - 1))
    guess, activity = _guess(rule, left, above, corner, beside)
    return padded[reach + 1 :] - guess, _context(activity)


def _tokens(left: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens of differences, the number of low bits that they leave over, and these bits, int64."""
    magnitude = left.abs()
    exponent = magnitude.to(torch.float64).frexp().exponent.to(torch.int64) - 1
    lengths = torch.where(magnitude < DIRECT, 0, exponent - 1)
    bucket = 2 * (exponent - DIRECT_BITS) + DIRECT + ((magnitude >> lengths) & 1)
    tokens = 2 * torch.where(magnitude < DIRECT, magnitude, bucket) - (left < 0).to(torch.int64)
    return tokens, lengths, magnitude & ((1 << lengths) - 1)


def _counted(left: Tensor, context: Tensor, active: Tensor) -> Counts:
    """Return the counts of tokens in each context, int64 (contexts, tokens)."""
    places = (context * TOKENS + _tokens(left)[0])[active.expand(left.shape)]
    return torch.bincount(places, minlength=CONTEXTS * TOKENS).view(CONTEXTS, TOKENS).cpu().numpy()


def _coded(chunks: Chunks, left: Tensor, context: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return sizes, states and words of chunks, and the lengths and numbers of their low bits in order."""
    active = _active(chunks, left.device)[:, None].expand(left.shape)
    tokens, lengths, low = _tokens(left)
    lengths = torch.where(active, lengths, 0)
    table = frequencies.to(torch.int64)
    places = context * TOKENS + tokens
    found = torch.where(active, table.flatten()[places], TABLE)
    starts = torch.where(active, (table.cumsum(1) - table).flatten()[places], 0)
    state = torch.full(left.shape[1:], FIRST_STATE, dtype=torch.int64, device=left.device)
    words, written = torch.empty_like(left), torch.empty_like(active)
    for step in range(chunks.steps - 1, -1, -1):
        frequency = found[step]
        written[step] = full = (state >> (2 * WORD_BITS - TABLE_BITS)) >= frequency
        words[step] = state
        state = torch.where(full, state >> WORD_BITS, state)
        quotient = torch.div(state, frequency, rounding_mode="floor")
        state += quotient * (TABLE - frequency) + starts[step]
    by_chunk = (words.transpose(0, 1)[written.transpose(0, 1)] & (FIRST_STATE - 1)).to(torch.int16)
    sizes = torch.stack((written.sum((0, 2)), lengths.sum((0, 2))), 1).to(torch.int32)
    in_order = lengths.transpose(0, 1).flatten()
    kept = in_order > 0
    states = state[:, : chunks.streams].flatten().to(torch.int32)
    return sizes, states, by_chunk, in_order[kept], low.transpose(0, 1).flatten()[kept]


def _packed_bits(numbers: Tensor, lengths: Tensor) -> Tensor:
    """Return numbers of the given lengths in bits one behind the other, the first bit lowest, uint8 (bytes,)."""
    ends = lengths.cumsum(0)
    size = -(-int(ends[-1]) // _BYTE) if len(ends) else 0
    bits = torch.zeros(size * _BYTE, dtype=torch.uint8, device=numbers.device)
    for place in range(int(lengths.max()) if len(lengths) else 0):
        longer = lengths > place
        bits[(ends - lengths)[longer] + place] = ((numbers[longer] >> place) & 1).to(torch.uint8)
    return (bits.view(-1, _BYTE) << torch.arange(_BYTE, device=bits.device, dtype=torch.uint8)).sum(1, dtype=torch.uint8)


def _windows(packed: Tensor) -> Tensor:
    """Return the 40 bits that begin at each byte, and one window of zeros behind, int64 (bytes + 1,)."""
    padded = torch.cat((packed, packed.new_zeros(5))).to(torch.int64)
    return sum((padded[place : place + packed.numel() + 1] << (_BYTE * place) for place in range(5)), padded.new_zeros(1))


def _lookups(frequencies: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the token of each context and slot, and what a token has: its frequency and its first slot, int64, flat."""
    table = frequencies.to(torch.int64)
    numbers = torch.arange(TOKENS, device=table.device).expand(table.shape)
    return numbers.flatten().repeat_interleave(table.flatten()), table.flatten(), (table.cumsum(1) - table).flatten()


def _decoded(
    chunks: Chunks,
    rule: int,
    reach: int,
    tables: tuple[Tensor, Tensor, Tensor],
    states: Tensor,
    starts: Tensor,
    sizes: Tensor,
    words: Tensor,
    windows: Tensor,
) -> Tensor:
    """Return the values of chunks in order, int32 (n,)."""
    slots, frequencies, firsts = tables
    active = _active(chunks, words.device)[:, : chunks.streams]
    padded = torch.zeros(reach + 1 + chunks.steps, *states.shape, dtype=torch.int64, device=words.device)
    state = states.to(torch.int64) & 0xFFFF_FFFF
    word, bit = starts[:, :1].clone(), starts[:, 1:].clone()
    unsigned = torch.cat((words.to(torch.int64) & (FIRST_STATE - 1), words.new_zeros(1, dtype=torch.int64)))
    for step in range(chunks.steps):
        here = reach + 1 + step
        guess, activity = _guess(
            rule, padded[here - 1], padded[here - reach], padded[here - reach - 1], padded[here - reach + 1]
        )
        context = _context(activity)
        slot = state & (TABLE - 1)
        token = slots[context * TABLE + slot]
        places = context * TOKENS + token
        following = frequencies[places] * (state >> TABLE_BITS) + slot - firsts[places]
        state = torch.where(active[step], following, state)
        empty = state < FIRST_STATE
        ends = word + empty.cumsum(1)
        found = unsigned[(ends - 1).clamp_(0, len(unsigned) - 1)]
        state = torch.where(empty, (state << WORD_BITS) | found, state)
        word = ends[:, -1:]
        bucket = (token + 1) >> 1
        lengths = torch.where(active[step] & (bucket >= DIRECT), ((bucket - DIRECT) >> 1) + DIRECT_BITS - 1, 0)
        behind = bit + lengths.cumsum(1)
        at = (behind - lengths).clamp_(0, _BYTE * (len(windows) - 1))
        low = (windows[at >> 3] >> (at & (_BYTE - 1))) & ((1 << lengths) - 1)
        bit = behind[:, -1:]
        magnitude = torch.where(bucket < DIRECT, bucket, ((2 + ((bucket - DIRECT) & 1)) << lengths) | low)
        value = guess + torch.where(token & 1 == 1, -magnitude, magnitude)
        # Damaged parts may overflow.
        padded[here] = torch.where(active[step], value, 0).to(torch.int32)
    fits = (word - starts[:, :1] == sizes[:, :1]) & (bit - starts[:, 1:] == sizes[:, 1:]) & (state == FIRST_STATE)
    if not bool(fits.all()):
        raise spoiled()
    return padded[reach + 1 :].permute(1, 2, 0).reshape(chunks.count, -1)[:, : chunks.values].flatten().to(torch.int32)
