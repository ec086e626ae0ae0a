"""Containers of several tensors (bitstream.md, section 10)."""

import struct
import zlib

import actcodec
import plain_container
import pytest
import torch
from actcodec.codecs import container
from actcodec.codecs.compressed import OversizeError
from actcodec.codecs.exact_copy import ExactCopy
from cdu_spec.bitstream import BitstreamError
from cdu_tools.errors import UserError


def tensors():
    x = torch.randn(1, 2, 16, 16, generator=torch.Generator().manual_seed(0))
    return {
        "layer/conv": actcodec.codec("jpeg-act").compress(x),
        "ä": actcodec.codec("jpeg-base").compress(x.half()),
        "b": actcodec.codec("autoquantz").compress(x[0].bfloat16()),
        "n": ExactCopy.of(torch.tensor(7)),
    }


def packed():
    return b"".join(container.serialise(tensors()))


def signed(content):
    return content + struct.pack("<I", zlib.crc32(content))


def entry(name, stream):
    return struct.pack("<HQ", len(name), len(stream)) + name + stream


def test_a_plain_reader_finds_names_and_streams():
    whole = packed()
    expected = [(name, one.to_bytes()) for name, one in tensors().items()]
    assert plain_container.read(whole) == expected
    assert container.size_of({name: len(stream) for name, stream in expected}) == len(whole)


def test_all_kinds_come_back():
    found = container.parse(packed())
    assert list(found) == list(tensors())
    for name, one in tensors().items():
        assert found[name].codec == one.codec
        assert torch.equal(found[name].decompress(), one.decompress())
        assert found[name].to_bytes() == one.to_bytes()


def test_every_changed_byte_is_refused():
    whole = packed()
    for place in range(0, len(whole), 7):
        bad = bytearray(whole)
        bad[place] ^= 1 << place % 8
        with pytest.raises(BitstreamError):
            container.parse(bytes(bad))


def test_every_cut_and_everything_behind_the_end_is_refused():
    whole = packed()
    for length in range(0, len(whole), 11):
        with pytest.raises(BitstreamError, match="truncated"):
            container.parse(whole[:length])
    with pytest.raises(BitstreamError, match="bytes behind its checksum"):
        container.parse(whole + b"\0")


STREAM = ExactCopy.of(torch.ones(3)).to_bytes()
HEAD = b"CDC\x1a\1\0\0\0"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"CDU\x1a" + HEAD[4:] + struct.pack("<I", 1) + entry(b"a", STREAM), "not a container"),
        (b"CDC\x1a\2\0\0\0" + struct.pack("<I", 1) + entry(b"a", STREAM), "container version 2 is not known"),
        (b"CDC\x1a\1\0\1\0" + struct.pack("<I", 1) + entry(b"a", STREAM), "its header is not allowed"),
        (HEAD + struct.pack("<I", 0), "its header is not allowed"),
        (HEAD + struct.pack("<I", 1) + entry(b"", STREAM), "the name '' is empty"),
        (HEAD + struct.pack("<I", 2) + 2 * entry(b"a", STREAM), "the name 'a' is empty or stands in it twice"),
        (HEAD + struct.pack("<I", 1) + entry(b"\xff", STREAM), "a name is no UTF-8"),
        (HEAD + struct.pack("<I", 1) + entry(b"a", STREAM + b"\0"), "33 bytes for tensor 'a', but its header says 32"),
    ],
    ids=["magic", "version", "reserved", "none", "empty name", "twice", "no UTF-8", "length"],
)
def test_what_breaks_a_rule_is_refused(content, said):
    with pytest.raises(BitstreamError, match=said):
        container.parse(signed(content))
    assert list(container.parse(signed(HEAD + struct.pack("<I", 1) + entry(b"a", STREAM)))) == ["a"]


def test_the_limit_is_of_all_tensors_together():
    sizes = 2048 + 1024 + 1024 + 8
    assert len(container.parse(packed(), sizes)) == 4
    with pytest.raises(OversizeError, match="are allowed"):
        container.parse(packed(), sizes - 1)


def test_what_is_announced_is_not_allocated():
    """A stream of 2**60 bytes is refused by its header, and nothing behind the headers is asked for."""
    huge = b"CDX\x1a\1\0\1\0" + struct.pack("<Q", 1 << 58)
    content = HEAD + struct.pack("<I", 1) + struct.pack("<HQ", 1, (1 << 60) + 20) + b"a" + huge + bytes(1 << 14)
    asked = []

    def read(size, place=[0]):  # noqa: B006
        asked.append(size)
        place[0] += size
        return content[place[0] - size : place[0]]

    with pytest.raises(OversizeError, match="1152921504606846976 bytes: 1000 are allowed"):
        list(container.streams(read, 1000))
    assert max(asked) <= 1 << 13


@pytest.mark.parametrize(
    ("names", "said"),
    [([], "a container of 0 tensors"), ([""], "a name of 0 bytes"), (["x" * 65536], "65536 bytes"), (["\udcff"], "no UTF-8")],
)
def test_what_cannot_be_written(names, said):
    with pytest.raises(UserError, match=said):
        list(container.serialise({name: ExactCopy.of(torch.ones(1)) for name in names}))


def test_the_longest_name():
    name = "ä" * 32767 + "x"
    assert list(container.parse(b"".join(container.serialise({name: ExactCopy.of(torch.ones(1))})))) == [name]
