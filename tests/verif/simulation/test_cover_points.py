"""Cover points, and the rates that the benches hold a unit to."""

import pytest
import torch
from actcodec.backends.job import Job
from cdu_spec.affine import AffineSettings
from cdu_spec.channel_block import ERROR_FLAGS
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.dma import RING_REGISTERS
from cdu_spec.modes import Dtype, Mode
from cdu_spec.register_types import Channel
from cdu_verif.regression import plan, results
from cdu_verif.simulation import cover_points
from cdu_verif.stimulus import rates

PASSED = results.TestResult("array", "a", results.PASSED, 1, 0.0, covered={"cp_x": ["one", "stray"]})
OTHER = results.TestResult("array[cdus=2]", "b", results.PASSED, 1, 0.0, covered={"cp_x": ["two"]})


def test_bins_are_named_once():
    for run in plan.runs(CduConfig(), [plan.ARRAY], full=True):
        for point, names in cover_points.bins(run.config).items():
            assert len(set(names)) == len(names), point


def test_every_error_of_the_register_map_is_a_bin():
    names = cover_points.bins(CONFIGS["universal"].override(payload_crc=1))["cp_error"]
    for flag, _ in ERROR_FLAGS:
        assert any(cover_points.error(flag, channel) in names for channel in Channel), flag


def test_a_unit_without_crcs_has_no_bins_for_them():
    names = {crc: cover_points.bins(CduConfig(payload_crc=crc))["cp_error"] for crc in (0, 1)}
    assert set(names[1]) - set(names[0]) == {cover_points.error("bad_crc", Channel.DECOMPRESS)}


def test_a_unit_without_a_mode_has_no_bins_for_it():
    names = cover_points.bins(CduConfig(modes=("brc",)))
    assert "cp_width" not in names
    assert not any("scale_missing" in name or "busy_write" in name for name in names["cp_error"])
    assert len(names["cp_mode"]) == 2


def test_hits_of_all_runs_count_together():
    report = results.functional_coverage([PASSED, OTHER], {"cp_x": ["one", "two", "three"], "cp_y": ["any"]})
    assert report == {
        "cp_x": {"bins": 3, "hit": 2, "missing": ["three"]},
        "cp_y": {"bins": 1, "hit": 0, "missing": ["any"]},
    }


def test_the_report_shows_what_is_missing(tmp_path):
    report = results.report([PASSED], "cdu verify", {}, {"cp_x": ["one", "two"]})
    report.write(tmp_path)
    assert report.content["cover_points"]["cp_x"]["missing"] == ["two"]
    assert "| cp_x | 2 | 1 | two |" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(("count", "beats", "expected"), [(1, 1, 1), (4, 4, 4), (4, 5, 1), (3, 7, 3), (8, 24, 8)])
def test_last_word_of_values(count, beats, expected):
    config = CduConfig(cdus=count)
    assert cover_points.last_word(config, beats) == f"P = {config.port_beats}: {expected}"


def test_filling_of_the_last_packed_word():
    config = CduConfig(packed_port_bits=128)
    names = [cover_points.filling(config, size).partition(": ")[2] for size in (1, 15, 16, 17, 31, 32)]
    assert names == ["1 byte", "partial", "full", "1 byte", "partial", "full"]


def test_lengths_of_blocks():
    assert rates.block_bytes(_job(Mode.BRC, 19), bytes(19)) == [8, 8, 3]
    assert rates.block_bytes(_job(Mode.SFPR, 9), bytes(72)) == [64, 8]
    empty, full = bytes(8), b"\xff" * 8 + bytes(range(1, 65))
    assert rates.block_bytes(_job(Mode.SFPR_ZVC, 24), empty + full + empty) == [8, 72, 8]
    assert rates.block_bytes(_job(Mode.AUTOQUANT, 9, AffineSettings(4)), bytes(36)) == [32, 4]
    assert rates.block_bytes(_job(Mode.DIVISION, 16, AffineSettings(2, 5)), bytes(36)) == [18, 18]
    assert rates.block_bytes(_job(Mode.ACTNN, 32, AffineSettings(1)), bytes(36)) == [12, 8, 8, 8]
    sparse = b"\x07\x01" + bytes(6) + b"\x55\x15" + b"\x03"  # 3 and 1 codes of 4 bits
    assert rates.block_bytes(_job(Mode.AUTOQUANTZ, 8, AffineSettings(4)), sparse) == [11]


def _job(mode, beats, settings=None):
    return Job(mode, Dtype.FP32, beats, beats, 1, (), torch.ones(1), how=settings)


@pytest.mark.parametrize(
    ("settings", "mode", "rows"),
    [
        ({"cdus": 3}, Mode.SFPR, 3),
        ({"cdus": 4, "value_port_bits": 512}, Mode.BRC, 2),
        ({}, Mode.BYPASS, 0.5),
        ({"cdus": 4, "packed_port_bits": 1024}, Mode.BYPASS, 4),
    ],
)
def test_rows_per_cycle(settings, mode, rows):
    assert rates.rows_per_cycle(CduConfig(**settings), mode) == rows


def test_a_narrow_packed_port_is_the_limit():
    payload = (b"\xff" * 8 + bytes(range(1, 65))) * 2
    config = CduConfig(cdus=8, packed_port_bits=128)
    assert rates.least_cycles(config, _job(Mode.JPEG_ACT, 16), payload) == 2 * 5  # 72 bytes in slices of 16
    assert rates.least_cycles(config, _job(Mode.JPEG_ACT, 16), bytes(16)) == 2


def test_a_host_can_do_each_wrong_thing_in_both_directions():
    names = cover_points.engine_bins(CduConfig(dma_bits=128))["cp_host"]
    assert len(set(names)) == len(names)
    for register in RING_REGISTERS:
        for event in (cover_points.bad_number(register), cover_points.moved(register)):
            assert {cover_points.host(channel, event) for channel in Channel} <= set(names)
