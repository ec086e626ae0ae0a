"""Rules of docs/reference/bitstream.md, section 8, on streams made by hand: valid ones are decoded, others refused."""

import actcodec
import pytest
import torch
from cdu_spec import BitstreamError
from cdu_verif.stimulus.streams import jpeg_base
from cdu_verif.stimulus.streams.rule import Refuses
from plain_jpeg import RefusedError, decode

BACKENDS = ("torch", "native")
RULES = {rule.name.removeprefix("jpeg-base, "): rule for rule in jpeg_base.rules()}
FORMATS = [torch.float32, torch.bfloat16, torch.float16]
LENGTHS = "bytes, but its header says|fewer than a header|as many symbols as they say"
ENDS = "does not end where|ends before its last block|no Huffman code"
#: Messages of the refusals, so that a stream is not refused for another reason.
SAYS = {
    "sections": LENGTHS,
    "checksum": "the checksum does not match",
    "magic": "does not begin with the magic bytes",
    "version": "stream version .* is not known",
    "form": "number format .* does not exist",
    "const_bits": "DCT precision",
    "pass1_bits": "DCT precision",
    "tables": "reserved header bits",
    "reserved": "reserved header bits",
    "shape": "extents 1 to|payload bytes cannot hold shape",
    "divisors": f"64 divisors from 1 to 255|{LENGTHS}",
    "reciprocals": f"a reciprocal is out of range|{LENGTHS}",
    "payload bytes": f"payload bytes cannot hold shape|{LENGTHS}",
    "symbols": "a symbol that baseline JPEG does not know|a symbol stands twice",
    "codes": "more codes than its lengths allow, or one of ones only|as many symbols as they say",
    "standard tables": "carries the standard Huffman tables",
    "markers": f"a marker stands|{ENDS}",
    "patterns": "no Huffman code",
    "end": ENDS,
    "runs": "a run leaves its block",
    "zeros": "is not followed by a coefficient of its block|a run leaves its block",
    "DC coefficients": "a DC coefficient is not within",
}


def test_every_rule_says_its_reason():
    assert list(SAYS) == list(RULES)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", RULES)
def test_what_keeps_a_rule_is_decoded(name, backend):
    assert RULES[name].good
    for label, stream in RULES[name].good.items():
        form, values = decode(stream)
        packed = actcodec.from_bytes(stream)
        assert torch.equal(packed.decompress(backend), torch.from_numpy(values).to(FORMATS[form])), label
        assert packed.to_bytes() == stream, label


@pytest.mark.parametrize("name", RULES)
def test_what_breaks_a_rule_is_refused(name):
    """Check refusal by the reader of the stream, or by both decoders with one message, and by the independent decoder."""
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
        with pytest.raises(RefusedError):
            decode(stream)
