"""The command ``cdu info``."""

import json
import zlib

import actcodec
import pytest
import torch
from actcodec.codecs.container import serialise
from actcodec.codecs.exact_copy import ExactCopy
from cdu_spec.modes import STREAM_NAMES
from cdu_tools.errors import UserError
from click.testing import CliRunner
from command_line import ENTRY

X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def about(tmp_path):
    def call(content, *words):
        (tmp_path / "x.cdu").write_bytes(content)
        command = ["info", str(tmp_path / "x.cdu"), "--json", str(tmp_path / "x.json"), *words]
        result = CliRunner().invoke(ENTRY, command, catch_exceptions=False)
        return json.loads((tmp_path / "x.json").read_text()), result.stdout

    return call


@pytest.mark.parametrize("name", STREAM_NAMES)
def test_every_codec(about, name):
    stream = actcodec.codec(name).compress(X.bfloat16()).to_bytes()
    found, text = about(stream)
    assert (found["codec"], found["shape"], found["dtype"]) == (name, list(X.shape), "bfloat16")
    assert (found["bytes_original"], found["bytes_compressed"]) == (X.nbytes // 2, len(stream))
    assert sum(found["bytes_by_part"].values()) == len(stream)
    assert found["checksum"] == f"{zlib.crc32(stream[:-4]):08x}"
    assert found["version"] == (2 if name == "jpeg-gmc" else 1)
    assert f": {name}" in text.splitlines()[0]
    assert f"checksum {found['checksum']} (right)" in text
    assert f"payload {found['bytes_by_part']['payload']}" in text


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("jpeg-act", {"dqt": "optH", "rec": 0.375}),
        ("jpeg-act", {"dqt": "uniform-8", "rec": 0.0, "const_bits": 10, "pass1_bits": 3}),
        ("jpeg-gmc", {"dqt": "searchsH", "rec": 0.5}),
        ("jpeg-gmc", {"dqt": [8, 16, 32, 64, 128, 8, 8, 8] * 8}),
        ("jpeg-base", {"dqt": "optL", "huffman": "optimal"}),
        ("jpeg-base", {"dqt": "image50", "huffman": "standard"}),
        ("jpeg-base", {"dqt": list(range(1, 65))}),
        ("division", {"bits": 4, "range": "channel"}),
        ("division", {"bits": 1, "range": "block"}),
        ("actnn", {"bits": 8}),
        ("autoquantz", {"bits": 4}),
    ],
)
def test_options_are_those_that_were_given(about, name, options):
    packed = actcodec.codec(name, **options).compress(X)
    found, _ = about(packed.to_bytes())
    assert {key: found["options"][key] for key in options} == options


@pytest.mark.parametrize("name", ["jpeg-act", "jpeg-base"])
def test_a_table_that_is_shown_makes_the_same_stream(about, name):
    for table in ("optL", "optH", "image30", "uniform-16", "searchsH"):
        stream = actcodec.codec(name, dqt=table).compress(X).to_bytes()
        shown = about(stream)[0]["options"]["dqt"]
        assert actcodec.codec(name, dqt=shown).compress(X).to_bytes() == stream


def test_a_container(about):
    tensors = {"w": actcodec.codec("sfpr").compress(X), "n": ExactCopy.of(torch.arange(3))}
    content = b"".join(serialise(tensors))
    found, text = about(content)
    assert found["bytes_compressed"] == len(content)
    assert {name: one["codec"] for name, one in found["tensors"].items()} == {"w": "sfpr", "n": "exact"}
    assert found["tensors"]["n"] == {
        "codec": "exact",
        "options": {},
        "shape": [3],
        "dtype": "int64",
        "version": 1,
        "checksum": f"{zlib.crc32(tensors['n'].to_bytes()[:-4]):08x}",
        "bytes_original": 24,
        "bytes_compressed": 44,
        "ratio": 24 / 44,
        "bytes_by_part": {"header": 8, "shape": 8, "values": 24, "checksum": 4},
    }
    assert text.splitlines()[0].endswith(f"x.cdu: container of 2 tensors in {len(content)} bytes")


def test_names_cannot_move_the_cursor(about):
    names = ["two\nlines", "\x1b[2J", "größe"]
    _, text = about(b"".join(serialise({name: ExactCopy.of(torch.ones(1)) for name in names})))
    assert [line.split(": ")[0] for line in text.splitlines()[1::3]] == [ascii(names[0]), ascii(names[1]), names[2]]


def test_a_checksum_that_is_wrong(about):
    stream = bytearray(actcodec.codec("sfpr").compress(X).to_bytes())
    stream[-1] ^= 1
    with pytest.raises(UserError, match=r"x\.cdu: corrupted stream: the checksum does not match"):
        about(bytes(stream))
    content = bytearray(b"".join(serialise({"n": ExactCopy.of(torch.arange(3))})))
    content[40] ^= 1
    with pytest.raises(UserError, match=r"x\.cdu: corrupted container: the checksum does not match"):
        about(bytes(content))
