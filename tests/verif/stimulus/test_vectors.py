"""Stimulus for a user's own test bench: first passes of division, formats of mx, and the words that say how to read them."""

import json
from fractions import Fraction

import pytest
import torch
from cdu_spec import CduConfig
from cdu_spec.modes import Mode
from cdu_verif.stimulus import vectors


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    config = CduConfig(modes=("division", "mx"))
    content = vectors.write(config, [Mode.DIVISION, Mode.MX], 3, folder)
    assert json.loads((folder / "vectors.json").read_text()) == json.loads(json.dumps(content))
    return folder, content


def words(written, half, stream, job):
    """Return the transfers of a job as numbers."""
    folder, content = written
    lines = (folder / content["halves"][half]["streams"][stream]["file"]).read_text().split()
    begin = job[stream]["first"]
    return [int(line, 16) for line in lines[begin : begin + job[stream]["count"]]]


def fields(written, half, stream, word):
    """Return the fields of a transfer by name, those of several elements as lists."""
    found = {}
    for field in written[1]["halves"][half]["streams"][stream]["fields"]:
        mask = (1 << field["width"]) - 1
        parts = [word >> field["offset"] + field["width"] * i & mask for i in range(field["count"])]
        found[field["name"]] = parts if field["count"] > 1 else parts[0]
    return found


def payload_of(written, half, stream, job):
    parts = [fields(written, half, stream, word) for word in words(written, half, stream, job)]
    assert [part["last"] for part in parts] == [0] * (len(parts) - 1) + [1]
    return b"".join(part["data"].to_bytes(16, "little")[: part["count"]] for part in parts)


def signed(raw):
    return int.from_bytes(raw, "little", signed=True)


def integer(value, k):
    """Return the exact product of two floats, rounded half to even and limited to 16 bits."""
    return max(-(2**15), min(2**15 - 1, round(Fraction(value) * Fraction(k))))


def test_first_passes_of_division_are_the_statistics_of_the_page(written):
    """Check all bytes of a tensor of several channels against exact integers, in the order that `format` says."""
    jobs = [job for job in written[1]["halves"]["compressor"]["jobs"] if job["how"].get("affine", {}).get("statistics")]
    assert len(jobs) == 5
    job = next(job for job in jobs if "(2, 3, 8, 32)" in job["name"])
    parts = [fields(written, "compressor", "i", word) for word in words(written, "compressor", "i", job)]
    rows = [row for part in parts for row in torch.tensor(part["values"]).view(-1, 8).tolist()[: part["count"]]]
    scales = [fields(written, "compressor", "scales", word)["value"] for word in words(written, "compressor", "scales", job)]
    floats = [torch.tensor(bits).to(torch.int32).view(torch.float32).item() for bits in scales]
    patterns = torch.tensor(rows).to(torch.int32).view(torch.float32).view(6, 8, 4, 8)
    payload = payload_of(written, "compressor", "o", job)
    assert len(payload) == job["payload_bytes"] == 6 * 24
    for strip in range(6):
        for block in range(4):
            values = [integer(value, floats[strip % 3]) for value in patterns[strip, :, block].flatten().tolist()]
            head = payload[6 * (4 * strip + block) :][:6]
            expected = ((sum(values) + 32) // 64, min(values), max(values))
            assert tuple(signed(head[begin : begin + 2]) for begin in (0, 2, 4)) == expected


def test_only_a_compressor_has_first_passes(written):
    jobs = {half: part["jobs"] for half, part in written[1]["halves"].items()}
    kept = [job["name"] for job in jobs["compressor"] if not job["name"].endswith(", statistics")]
    assert [job["name"] for job in jobs["decompressor"]] == kept


def test_mx_has_every_format_and_rule_by_name(written):
    jobs = [job for job in written[1]["halves"]["decompressor"]["jobs"] if "mx" in job["how"]]
    names = ("mxint8", "mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4")
    expected = [(number, rceil, name) for number, name in enumerate(names) for rceil in (0, 1)]
    assert [(job["how"]["mx"]["format"], job["how"]["mx"]["rceil"], job["name"].split()[-2]) for job in jobs] == expected


def test_the_format_says_how_to_read(written):
    said = written[1]["format"]
    for words in ("tiles of 32 columns", "valid rows of 8 values", "number of elements", "first passes of division"):
        assert words in said
