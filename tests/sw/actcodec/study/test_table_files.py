"""Tables of one's own in codecs and in files."""

import json

import actcodec
import pytest
import torch
from cdu_spec import dqt
from cdu_spec.dqt_file import read_table, table_text
from cdu_tools.errors import UserError
from hypothesis import given
from hypothesis import strategies as st

X = torch.randn(2, 2, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("codec", ["jpeg-act", "jpeg-base"])
def test_a_file_and_integers_do_what_the_name_does(tmp_path, codec):
    for name in ("optsH", "image80"):
        table = dqt.divisors(name)
        (tmp_path / "table.json").write_text(table_text(table, {"name": name}))
        named = actcodec.codec(codec, dqt=name).compress(X).to_bytes()
        for given_as in (list(table), table, str(tmp_path / "table.json")):
            assert actcodec.codec(codec, dqt=given_as).compress(X).to_bytes() == named
    other = actcodec.codec(codec, dqt=[8, *[64] * 63]).compress(X)
    assert other.to_bytes() != named
    assert torch.equal(actcodec.decompress(actcodec.from_bytes(other.to_bytes())), other.decompress())


def test_divisors_reach_the_stream_unchanged():
    table = tuple(range(1, 65))
    packed = actcodec.codec("jpeg-base", dqt=table).compress(X)
    assert sorted(packed.header.divisors) == list(table)
    packed = actcodec.codec("jpeg-act", dqt=[1 << max(dqt.LEAST_SHIFT, place % 8) for place in range(64)]).compress(X)
    assert packed.shifts == tuple(
        max(dqt.LEAST_SHIFT, column) for column in range(8) for _ in range(8)
    )  # payload order is column by column


def test_a_table_is_read_once(tmp_path):
    path = tmp_path / "table.json"
    path.write_text(table_text(dqt.OPT_H, {}))
    codec = actcodec.codec("jpeg-base", dqt=str(path))
    path.unlink()
    assert codec.compress(X).to_bytes() == actcodec.codec("jpeg-base", dqt="optH").compress(X).to_bytes()


@given(st.lists(st.integers(1, 255), min_size=64, max_size=64))
def test_files_keep_tables(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("tables") / "t.json"
    path.write_text(table_text(table, {"alpha": 0.1, "command": 'cdu "dqt"'}))
    assert read_table(path) == tuple(table)
    assert json.loads(path.read_text()) == {"alpha": 0.1, "command": 'cdu "dqt"', "divisors": table}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "it is no JSON"),
        ("[1, 2]", "has no list 'divisors'"),
        ('{"divisors": 8}', "has no list 'divisors'"),
        (json.dumps({"divisors": [8] * 63}), "has 64 integers from 1 to 255, row after row: these are 63"),
        (json.dumps({"divisors": [8] * 63 + [0]}), "entry 63 is 0"),
        (json.dumps({"divisors": [8] * 63 + [256]}), "entry 63 is 256"),
        (json.dumps({"divisors": [8.5] + [8] * 63}), "entry 0 is 8.5"),
        (json.dumps({"divisors": [True] + [8] * 63}), "entry 0 is True"),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, message):
    path = tmp_path / "bad.json"
    path.write_text(content)
    for codec in ("jpeg-act", "jpeg-base"):
        with pytest.raises(UserError, match=message) as caught:
            actcodec.codec(codec, dqt=str(path))
        assert "bad.json" in str(caught.value)
        assert "\n" not in str(caught.value)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="it is no JSON"):
        read_table(path)


def test_what_is_no_table(tmp_path):
    with pytest.raises(UserError, match=r"cannot read the quantisation table .*none\.json: No such file"):
        actcodec.codec("jpeg-act", dqt=str(tmp_path / "none.json"))
    with pytest.raises(UserError, match="64 integers from 1 to 255, row after row: these are 3"):
        actcodec.codec("jpeg-act", dqt=[1, 2, 3])
    with pytest.raises(UserError, match=r"unknown quantisation table 'table.txt': use optLH, optL, .* or a \.json file"):
        actcodec.codec("jpeg-base", dqt="table.txt")
    with pytest.raises(UserError, match="unknown quantisation table 'None'"):
        actcodec.codec("jpeg-base", dqt=None)
