"""Rules of docs/reference/bitstream.md on streams made by hand: valid ones are decoded accordingly, others refused."""

from functools import cache

import actcodec
import pytest
import torch
from cdu_spec import BitstreamError
from cdu_verif.stimulus.streams import rules
from cdu_verif.stimulus.streams.ignored import ignored
from cdu_verif.stimulus.streams.rule import Refuses
from plain_stream import decode

BACKENDS = ("torch", "native")
RULES = {rule.name: rule for rule in rules.rules()}
IGNORED = {one.name: one for one in ignored()}
FORMATS = [torch.float32, torch.bfloat16, torch.float16]
LENGTHS = "bytes, but its header says|fewer than a header|no room for a shape|payload bytes cannot hold shape"
#: Messages of the refusals, so that a stream is not refused for another reason.
SAYS = {
    "sections": LENGTHS,
    "checksum": "the checksum does not match",
    "magic": "does not begin with the magic bytes",
    "version": "stream version .* is not known",
    "mode": "mode .* does not exist",
    "number format": "number format .* does not exist",
    "rank": "no room for a shape of rank",
    "four axes": "needs rank 4",
    "const_bits": "DCT precision",
    "pass1_bits": "DCT precision",
    "bits": "bits = .* is not allowed|reserved header bits",
    "reserved bits": "reserved header bits",
    "block_range": "range of a block is not a choice|reserved header bits",
    "no step": "step_log2 = .* is not allowed|reserved header bits",
    "step_log2": "step_log2 = .* is not allowed",
    "extents": "extents 1 to",
    "shift table": LENGTHS,
    "reciprocals": f"a reciprocal is out of range|{LENGTHS}",
    "offsets": LENGTHS,
    "payload bytes": "payload bytes cannot hold shape",
    "masks": "the blocks do not end where the payload ends",
    "heads": "the step of a block is out of range",
}


@cache
def decoded(stream):
    """Decode a stream with the independent decoder, in its number format."""
    form, values = decode(stream)
    return torch.from_numpy(values).to(FORMATS[form])


def same(found, expected):
    return (found.dtype, found.shape) == (expected.dtype, expected.shape) and torch.equal(
        found.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8)
    )


def test_every_rule_says_its_reason():
    assert list(SAYS) == list(RULES)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", RULES)
def test_what_keeps_a_rule_is_decoded(name, backend):
    assert RULES[name].good
    for label, stream in RULES[name].good.items():
        packed = actcodec.from_bytes(stream)
        assert same(packed.decompress(backend), decoded(stream)), label
        assert packed.to_bytes() == stream, label


@pytest.mark.parametrize("name", RULES)
def test_what_breaks_a_rule_is_refused(name):
    """Check refusal by the reader of the stream, or by both decoders with one message."""
    rule = RULES[name]
    assert rule.bad
    for label, stream in rule.bad.items():
        if rule.by is Refuses.READER:
            with pytest.raises(BitstreamError, match=SAYS[name]) as caught:
                actcodec.from_bytes(stream)
            assert "\n" not in str(caught.value), label
            continue
        packed, said = actcodec.from_bytes(stream), set()
        for backend in BACKENDS:
            with pytest.raises(BitstreamError, match=SAYS[name]) as caught:
                packed.decompress(backend)
            said.add(str(caught.value))
        assert len(said) == 1, label


@pytest.mark.parametrize("backend", BACKENDS)
def test_reciprocals_at_their_ends_give_finite_numbers(backend):
    for label, stream in RULES["reciprocals"].good.items():
        assert actcodec.from_bytes(stream).decompress(backend).isfinite().all(), label


def test_good_and_bad_streams_are_different():
    for rule in RULES.values():
        assert not set(rule.good.values()) & set(rule.bad.values()), rule.name


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", IGNORED)
def test_what_is_ignored_changes_nothing(name, backend):
    for label, pair in IGNORED[name].pairs.items():
        assert len(set(pair)) == 2, label
        for stream in pair:
            assert same(actcodec.from_bytes(stream).decompress(backend), decoded(pair[0])), label
