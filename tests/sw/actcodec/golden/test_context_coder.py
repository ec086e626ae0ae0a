"""Integers in contexts against a decoder in plain Python, and the entropy of the contexts by numpy; damaged parts."""

from dataclasses import fields, replace

import actcodec
import numpy as np
import pytest
import torch
from actcodec.golden import context_coder
from actcodec.golden.context_coder import DIRECT, ContextCoded
from cdu_spec.bitstream import BitstreamError
from hypothesis import given, settings
from hypothesis import strategies as st

integers = st.one_of(
    st.integers(-2, 2),
    st.integers(-20, 20),
    st.integers(-130, 130),
    st.sampled_from([-(2**27), 2**27]),
    st.integers(-(2**27), 2**27),
)


class Bits:
    """Bits of bytes, the lowest first."""

    def __init__(self, content):
        self.number, self.left = int.from_bytes(content, "little"), 8 * len(content)

    def take(self, count):
        assert count <= self.left
        found = self.number & ((1 << count) - 1)
        self.number, self.left = self.number >> count, self.left - count
        return found


def plain_tables(packed):
    """Return the rule, and the frequencies of each context's tokens."""
    begins, many = packed[1] | packed[2] << 8, (packed[1] | packed[2] << 8).bit_count()
    sizes = packed[3 : 3 + many]
    bits = Bits(packed[3 + many :])
    lengths = [[bits.take(4) for _ in range(size)] for size in sizes]
    tables = [[(1 << length - 1) | bits.take(length - 1) if length else 0 for length in row] for row in lengths]
    assert bits.left < 8
    assert all(sum(table) == 4096 for table in tables)
    found, number = [], -1
    for context in range(12):
        number += begins >> context & 1
        found.append(tables[number])
    return packed[0], found


def plain_guess(rule, left, above, corner, beside):
    if rule == 0:
        return 0, abs(left) + abs(above)
    if rule in (1, 2):
        return (left, above)[rule - 1], abs(left - above)
    return sorted((left, above, left + above - corner))[1], abs(left - corner) + abs(above - corner) + abs(above - beside)


def plain_context(activity):
    octave = (activity + 1).bit_length() - 1
    return min(2 * octave + (2 * (activity + 1) >> octave) % 2, 11)


def plain_decode(coded, count, width):
    """Decode one value at a time, by the definition."""
    rule, tables = plain_tables(bytes(coded.tables.tolist()))
    reach = width if 1 < width <= 512 else 2
    words = iter([word & 0xFFFF for word in coded.words.tolist()])
    states, bits = iter([state & 0xFFFFFFFF for state in coded.states.tolist()]), Bits(bytes(coded.bits.tolist()))
    out = []
    for first in range(0, count, 65536):
        values = min(count - first, 65536)
        steps = max(-(-values // 32), 128)
        streams = [[] for _ in range(-(-values // steps))]
        state = [next(states) for _ in streams]
        for step in range(steps):
            for number, stream in enumerate(streams):
                if number * steps + step >= values:
                    continue
                near = [stream[step - back] if step >= back else 0 for back in (1, reach, reach + 1, reach - 1)]
                guess, activity = plain_guess(rule, *near)
                slot = state[number] % 4096
                table = tables[plain_context(min(activity, 63))]
                token = next(token for token in range(len(table)) if sum(table[: token + 1]) > slot)
                start, frequency = sum(table[:token]), table[token]
                state[number] = frequency * (state[number] // 4096) + slot - start
                if state[number] < 65536:
                    state[number] = state[number] << 16 | next(words)
                magnitude = (token + 1) // 2
                if magnitude >= 16:
                    below = (magnitude - 16) // 2 + 3
                    magnitude = (2 + magnitude % 2 << below) + bits.take(below)
                stream.append(guess + (-magnitude if token % 2 else magnitude))
        assert state == [65536] * len(streams)
        out += [value for stream in streams for value in stream]
    assert next(words, None) is None
    assert bits.left < 8
    return out


def rows(count, deviation, smooth, seed=0):
    """Return integers around a slow wave."""
    random = np.random.default_rng(seed)
    wave = smooth * np.cumsum(random.standard_normal(count)) if smooth else 0
    return torch.from_numpy((wave + deviation * random.standard_normal(count)).round().astype(np.int32))


@settings(max_examples=60, deadline=None)
@given(st.lists(integers, min_size=1, max_size=300), st.integers(1, 40))
def test_a_plain_decoder_finds_the_integers(numbers, width):
    coded = context_coder.encode(torch.tensor(numbers, dtype=torch.int32), width)
    assert plain_decode(coded, len(numbers), width) == numbers
    assert context_coder.decode(coded, len(numbers), width).tolist() == numbers
    assert coded.nbytes == sum(getattr(coded, field.name).nbytes for field in fields(coded))


@pytest.mark.parametrize(
    ("count", "width", "deviation", "smooth"),
    [(4096, 64, 2, 0), (5000, 37, 0.3, 1), (65536, 16, 5, 0.5), (65537, 700, 1, 0), (70001, 32, 1e4, 0), (2000, 1, 3, 0)],
)
def test_sizes_up_to_several_chunks(count, width, deviation, smooth):
    values = rows(count, deviation, smooth)
    coded = context_coder.encode(values, width)
    assert torch.equal(context_coder.decode(coded, count, width), values)
    if count <= 5000:
        assert plain_decode(coded, count, width) == values.tolist()


def test_neighbours_as_far_apart_as_they_can_be():
    most = 2**27
    for width in (1, 2, 3, 30):
        values = torch.tensor([most, -most, -most, most, 0], dtype=torch.int32).repeat(100)
        assert torch.equal(context_coder.decode(context_coder.encode(values, width), 500, width), values)


def conditional_entropy(values, width):
    """Return the bits of each rule: differences of at most 15, in contexts of streams of 2048."""
    streams = values.numpy().reshape(-1, 2048).astype(np.int64)

    def back(steps):
        return np.pad(streams, ((0, 0), (steps, 0)))[:, :2048]

    left, above, corner, beside = (back(steps) for steps in (1, width, width + 1, width - 1))
    median = np.median([left, above, left + above - corner], 0).astype(np.int64)
    rules = [
        (0, abs(left) + abs(above)),
        (left, abs(left - above)),
        (above, abs(left - above)),
        (median, abs(left - corner) + abs(above - corner) + abs(above - beside)),
    ]
    known, bits = np.array([plain_context(activity) for activity in range(64)]), []
    for guess, activity in rules:
        context = known[np.minimum(activity, 63)]
        pairs = np.unique(np.stack((context.ravel(), (streams - guess).ravel())), axis=1, return_counts=True)
        of_context = np.bincount(pairs[0][0], pairs[1])
        bits.append(float((pairs[1] * np.log2(of_context[pairs[0][0]] / pairs[1])).sum()))
    return bits


@pytest.mark.parametrize(("deviation", "smooth"), [(0.5, 0), (1.5, 0), (0.4, 0.3), (3, 0)])
def test_bytes_are_near_the_entropy_in_contexts(deviation, smooth):
    values = rows(1 << 17, deviation, smooth).clamp_(-7, 7)
    coded = context_coder.encode(values, 32)
    bits = conditional_entropy(values, 32)
    rule = int(coded.tables[0])
    assert bits[rule] <= 1.005 * min(bits)
    states = 32 * coded.states.numel()
    assert coded.bits.numel() == 0
    assert 0.999 * bits[rule] - states <= 16 * coded.words.numel() <= 1.005 * bits[rule]
    assert 8 * coded.nbytes <= 1.005 * bits[rule] + states + 8 * 500


def test_rules_follow_the_values():
    random = np.random.default_rng(1)
    noise = random.standard_normal((128, 64)) * 4
    found = {
        name: int(context_coder.encode(torch.from_numpy(field.round().astype(np.int32)), 64).tables[0])
        for name, field in {
            "zero": noise,
            "left": np.cumsum(noise, 1),
            "above": np.cumsum(noise, 0),
            "median": np.cumsum(np.cumsum(noise / 4, 0), 1) / 4,
        }.items()
    }
    assert found == {"zero": context_coder.ZERO, "left": context_coder.LEFT, "above": context_coder.ABOVE, "median": 3}


@pytest.mark.parametrize("value", [0, 5, -40000])
def test_what_is_constant_costs_next_to_nothing(value):
    values = torch.full((4, 65536), value, dtype=torch.int32)
    coded = context_coder.encode(values, 256)
    assert coded.nbytes < 1200
    assert torch.equal(context_coder.decode(coded, values.numel(), 256), values.flatten())


def test_no_values():
    coded = context_coder.encode(torch.zeros(0, dtype=torch.int32), 1)
    assert coded.nbytes == 0
    assert context_coder.decode(coded, 0, 1).shape == (0,)


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="values has dtype int64: use int32"):
        context_coder.encode(torch.zeros(3, dtype=torch.int64), 3)


counts = st.lists(
    st.lists(st.sampled_from([0, 0, 1, 3, 50, 10**4, 10**9]), min_size=1, max_size=context_coder.TOKENS),
    min_size=12,
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(counts, st.sampled_from(context_coder.RULES))
def test_tables_come_back(rows_of_counts, rule):
    """Check that whatever occurs has a frequency, by a reader in plain Python too."""
    given_counts = np.zeros((12, context_coder.TOKENS), np.int64)
    for row, numbers in zip(given_counts, rows_of_counts, strict=True):
        row[: len(numbers)] = numbers
    packed = context_coder.packed_tables(rule, given_counts)
    found, frequencies = context_coder.unpacked_tables(packed)
    assert found == rule
    assert (frequencies.sum(1) == 4096).all()
    assert (frequencies[given_counts > 0] > 0).all()
    plain_rule, plain = plain_tables(packed)
    assert plain_rule == rule
    assert [row + [0] * (context_coder.TOKENS - len(row)) for row in plain] == frequencies.tolist()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_tables(content):
    try:
        rule, frequencies = context_coder.unpacked_tables(content)
    except BitstreamError as error:
        assert "tables of coded integers are damaged" in str(error)  # noqa: PT017
    else:
        assert rule in context_coder.RULES
        assert (frequencies.sum(1) == 4096).all()


def outcome(packed, coded):
    """Return the values by both backends, or what they say."""
    found = []
    for backend in ("torch", "native"):
        codec = actcodec.codec("blpa-coded", coder="contexts", backend=backend)
        try:
            y = replace(packed, coded=coded, backend=codec.arithmetic).decompress()
        except BitstreamError as error:
            found.append(str(error))
        else:
            assert y.shape == packed.shape
            found.append("")
    assert all(not said or (said.startswith("corrupted stream: ") and "\n" not in said) for said in found)
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_parts_are_refused_or_decoded(data):
    """Change, cut or lengthen a part: no read beyond it, and the same sentence from both backends."""
    bits = data.draw(st.sampled_from([3, 12]))
    x = torch.randn(2, 3, 20, 16, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))
    packed = actcodec.codec("blpa-coded", bits=bits, coder="contexts", backend="native").compress(x)
    name = data.draw(st.sampled_from([field.name for field in fields(ContextCoded)]))
    part = getattr(packed.coded, name).clone()
    raw = part.view(-1).view(torch.uint8)
    change = data.draw(st.sampled_from(["bytes", "cut", "longer"]))
    if change == "bytes":
        for _ in range(data.draw(st.integers(1, 4))):
            if raw.numel():
                raw[data.draw(st.integers(0, raw.numel() - 1))] = data.draw(st.integers(0, 255))
    elif change == "cut":
        part = part[: data.draw(st.integers(0, max(len(part) - 1, 0)))]
    else:
        part = torch.cat((part, part[:1]))
    said = outcome(packed, replace(packed.coded, **{name: part.contiguous()}))
    assert said[0] == said[1]


def test_missing_words_are_found():
    x = torch.randn(2, 3, 20, 16)
    packed = actcodec.codec("blpa-coded", coder="contexts").compress(x)
    short = replace(packed.coded, words=packed.coded.words[:-1])
    assert outcome(packed, short) == [outcome(packed, short)[0]] * 2
    assert "keep all parts together" in outcome(packed, short)[0]
    moved = replace(packed.coded, words=packed.coded.words.flip(0))
    assert "do not end with the state that coding began with" in outcome(packed, moved)[0]


@pytest.mark.parametrize("magnitude", [*range(1, 40), 1000, (1 << 29) - 1])
def test_a_rule_counts_the_low_bits_of_great_magnitudes_only(magnitude):
    """A rule with all its tokens of one kind has no entropy, and costs the bits that are written beside the tokens."""
    values = torch.tensor([magnitude, -magnitude])
    tokens, lengths, _ = context_coder._tokens(values)
    assert lengths.tolist() == [max(magnitude.bit_length() - 2, 0) if magnitude >= DIRECT else 0] * 2
    assert context_coder._LOW_BITS[tokens].tolist() == lengths.tolist()
