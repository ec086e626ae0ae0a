"""The ground floor: tables against published ones, constants against mathematics, configurations, views, headers."""

import io
import math
import re
from itertools import combinations

import numpy as np
import pytest
from cdu_spec import BitstreamError, CduConfig, ConfigError, Dtype, Header, MatrixView, Mode, dct, dqt, named_config
from cdu_spec.affine import AffineSettings
from cdu_spec.bitstream import COEFFICIENT_ORDER, pack_shifts, unpack_shifts
from cdu_spec.coding import ShiftCoding, checked, known
from cdu_spec.config import CONFIGS
from cdu_spec.modes import AFFINE_MODES
from cdu_spec.mx import MxSettings, ScaleRule
from cdu_tools.errors import UserError
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image


@pytest.mark.parametrize("quality", [1, 10, 25, 49, 50, 51, 75, 90, 95, 99, 100])
def test_image_tables_are_libjpegs(quality):
    """If 5000 / Q is no integer, libjpeg truncates it: its scale is up to 1 % lower than the formula's."""
    file = io.BytesIO()
    Image.new("L", (8, 8)).save(file, "JPEG", quality=quality)
    theirs = np.array(Image.open(io.BytesIO(file.getvalue())).quantization[0])
    mine = np.array(dqt.image_table(quality))
    if quality >= 50 or 5000 % quality == 0:
        assert np.array_equal(mine, theirs)
    else:
        assert np.abs(mine - theirs).max() <= 1 + 0.01 * theirs.max()


def test_luminance_table_is_the_one_of_t81():
    assert dqt.divisors("image50") == dqt.T81_LUMINANCE
    assert sum(dqt.T81_LUMINANCE) == 3688


def test_shifts_are_nearest_powers_of_two():
    assert dqt.shifts("optL") == (3,) * 64
    assert dqt.shifts("optH") == tuple(int(math.log2(d)) for d in dqt.OPTS_H)
    for quality in range(1, 101):
        for divisor, shift in zip(dqt.image_table(quality), dqt.shifts(f"image{quality}"), strict=True):
            distances = {candidate: abs(math.log2(divisor) - candidate) for candidate in range(3, 8)}
            assert distances[shift] == min(distances.values())


@pytest.mark.parametrize("name", ["optL", "optH", "optsL", "optsH", "searchsH", "uniform-8", "uniform-128", "image50"])
def test_tables_that_saturate_nothing_are_as_they_were(name):
    """The published ones, and all others of divisors from 6 on: the limit changes no byte of theirs."""
    published = {"optL": dqt.OPTS_L, "optH": dqt.OPTS_H}
    divisors = published.get(name, dqt.divisors(name))
    assert dqt.shifts(name) == tuple(min(round(math.log2(divisor)), 7) for divisor in divisors)


@pytest.mark.parametrize("table", ["uniform-1", "uniform-2", "uniform-4", "image100", [1] * 64, [255, *[2] * 63]])
def test_shifts_with_which_coefficients_would_saturate_are_limited(table):
    assert min(dqt.shifts(table)) == dqt.LEAST_SHIFT
    assert set(dqt.shifts(table)) <= {dqt.LEAST_SHIFT, dqt.MAX_SHIFT}


@pytest.mark.parametrize("name", ["opt", "image", "image0", "image101", "image-1", "image1000", ""])
def test_unknown_tables(name):
    with pytest.raises(ValueError, match=r"unknown quantisation table|image quality"):
        dqt.divisors(name)


@pytest.mark.parametrize("const_bits", range(8, 14))
def test_basis_is_the_scaled_orthonormal_transform(const_bits):
    mine = np.array(dct.basis(const_bits)) / (math.sqrt(8) * 2**const_bits)
    assert np.abs(mine @ mine.T - np.eye(8)).max() < 2.0 ** (1 - const_bits) * 2
    n, k = np.meshgrid(np.arange(8), np.arange(8))
    exact = np.cos((2 * n + 1) * k * np.pi / 16) / 2
    exact[0] = math.sqrt(1 / 8)
    assert np.abs(mine - exact).max() <= 0.5 / (math.sqrt(8) * 2**const_bits) + 1e-12


def test_coefficient_order_is_column_by_column():
    assert sorted(COEFFICIENT_ORDER) == list(range(64))
    assert COEFFICIENT_ORDER[:9] == (0, 8, 16, 24, 32, 40, 48, 56, 1)


@given(st.lists(st.integers(0, 7), min_size=64, max_size=64))
def test_shift_table_bits(shifts):
    packed = pack_shifts(shifts)
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little").reshape(64, 3)
    assert (bits @ [1, 2, 4]).tolist() == shifts
    assert unpack_shifts(packed) == tuple(shifts)


@pytest.mark.parametrize(
    ("shape", "mode", "expected"),
    [
        ((2, 3, 9, 17), Mode.JPEG_ACT, (54, 17, 3, 9, 3, 56, 168, 7)),
        ((2, 3, 9, 17), Mode.SFPR, (6, 153, 3, 1, 20, 6, 120, 6)),
        ((2, 3, 9, 17), Mode.SFPR_ZVC, (6, 153, 3, 1, 20, 6, 120, 6)),
        ((1, 1, 1, 9), Mode.SFPR_ZVC, (1, 9, 1, 1, 2, 1, 8, 4)),
        ((2, 3, 7), Mode.SFPR, (1, 42, 1, 1, 6, 1, 6, 1)),
        ((2, 3, 9, 17), Mode.BRC, (1, 918, 1, 1, 115, 1, 115, 1)),
        ((2, 3, 9, 17), Mode.BYPASS, (1, 918, 1, 1, 115, 1, 115, 1)),
        ((2, 3, 9, 17), Mode.DIVISION, (54, 17, 3, 9, 3, 56, 168, 7)),
        ((2, 3, 9, 17), Mode.ACTNN, (29, 32, 1, 32, 4, 32, 128, 1)),
        ((257,), Mode.ACTNN, (9, 32, 1, 16, 4, 16, 64, 1)),
        ((2, 3, 9, 17), Mode.BLPA, (6, 153, 3, 1, 20, 6, 120, 6)),
        ((2, 3, 9, 17), Mode.AUTOQUANT, (6, 153, 3, 1, 20, 6, 120, 6)),
        ((1, 1, 1, 9), Mode.AUTOQUANTZ, (1, 9, 1, 1, 2, 1, 8, 4)),
    ],
)
def test_views(shape, mode, expected):
    """rows, columns, channels, rows per scale, beats per row, padded rows, beats, scale groups; worked out by hand."""
    v = MatrixView.of(shape, mode)
    assert expected == (
        v.rows,
        v.columns,
        v.channels,
        v.channel_rows,
        v.row_beats,
        v.padded_rows,
        v.beats,
        v.scale_groups,
    )


@pytest.mark.parametrize(
    ("mode", "dtype", "bounds"),
    [
        (Mode.SFPR, Dtype.FP32, (960, 960)),
        (Mode.SFPR, Dtype.FP16, (960, 960)),
        (Mode.SFPR_ZVC, Dtype.FP32, (120, 1080)),
        (Mode.JPEG_ACT, Dtype.BF16, (168, 1512)),
        (Mode.BRC, Dtype.FP32, (115, 115)),
        (Mode.BYPASS, Dtype.FP32, (3680, 3680)),
        (Mode.BYPASS, Dtype.BF16, (1840, 1840)),
        (Mode.BYPASS, Dtype.FP16, (1840, 1840)),
    ],
)
def test_payload_bounds(mode, dtype, bounds):
    """The bounds of the views above were computed by hand."""
    assert MatrixView.of((2, 3, 9, 17), mode).payload_bounds(dtype) == bounds


@pytest.mark.parametrize(
    ("mode", "settings", "bounds"),
    [
        (Mode.DIVISION, AffineSettings(2, 10), (378, 378)),  # 21 blocks of 2 + 16
        (Mode.DIVISION, AffineSettings(1, 0, block_range=True), (252, 252)),  # 21 blocks of 4 + 8
        (Mode.ACTNN, AffineSettings(4), (528, 528)),  # 4 groups of 4 + 128
        (Mode.BLPA, AffineSettings(4, 1), (480, 480)),  # 120 rows of 4
        (Mode.AUTOQUANT, AffineSettings(1, 15), (120, 120)),
        (Mode.AUTOQUANTZ, AffineSettings(2, 14), (120, 360)),  # 15 blocks of 8 to 24
    ],
)
def test_payload_bounds_of_affine_modes(mode, settings, bounds):
    """The bounds of the views above were computed by hand."""
    assert MatrixView.of((2, 3, 9, 17), mode).payload_bounds(Dtype.FP32, settings) == bounds


@pytest.mark.parametrize(
    ("mode", "settings", "message"),
    [
        (Mode.SFPR, AffineSettings(), "mode sfpr takes no settings"),
        (Mode.ACTNN, None, "mode actnn takes settings"),
        (Mode.ACTNN, MxSettings("mxfp4"), "mode actnn takes no format of MX"),
        (Mode.MX, None, "mode mx takes a format of MX"),
        (Mode.MX, ShiftCoding(), "mode mx takes no coder and reconstruction point"),
        (Mode.JPEG_ACT, AffineSettings(), "mode jpeg-act takes no settings of the affine quantiser"),
        (Mode.ACTNN, AffineSettings(2, 1), "step_log2 = 1 is not allowed where the step is found"),
        (Mode.BLPA, AffineSettings(2, 1, block_range=True), "not a choice of mode blpa"),
        (Mode.DIVISION, AffineSettings(2, 0), "use 1 or more"),
    ],
)
def test_settings_that_a_mode_does_not_take(mode, settings, message):
    with pytest.raises(UserError, match=message):
        checked(mode, settings)


def test_settings_that_are_left_out_are_the_published_ones_of_jpeg_act():
    assert checked(Mode.JPEG_ACT, None) == ShiftCoding()
    assert checked(Mode.SFPR, None) is None
    with pytest.raises(UserError, match="reconstruction point 5 is not allowed: use a number of eighths, 0 to 4"):
        ShiftCoding(point=5)
    with pytest.raises(ValueError, match="format of MX expected, not AffineSettings"):
        known(AffineSettings(), MxSettings)


def test_a_header_has_no_seed_no_rounding_and_no_rule():
    size = MatrixView.of((256,), Mode.ACTNN).payload_bounds(Dtype.FP32, AffineSettings(4))[0]
    header = Header(Mode.ACTNN, Dtype.FP32, (256,), size, how=AffineSettings(4, seed=9))
    assert header.how == AffineSettings(4, stochastic=False)
    header = Header(Mode.MX, Dtype.FP32, (32,), 17, how=MxSettings("mxfp4", ScaleRule.RCEIL))
    assert header.how == MxSettings("mxfp4")


@given(st.sampled_from(AFFINE_MODES), st.sampled_from([1, 2, 4, 8]), st.integers(0, 8), st.booleans(), st.sampled_from(Dtype))
def test_header_of_affine_modes(mode, bits, step_log2, block_range, dtype):
    block_range = block_range and mode is Mode.DIVISION
    step_log2 = 0 if mode is Mode.ACTNN or block_range else max(step_log2, 1)
    settings = AffineSettings(bits, step_log2, block_range=block_range, seed=7)
    size = MatrixView.of((2, 3, 9, 17), mode).payload_bounds(dtype, settings)[0]
    header = Header(mode, dtype, (2, 3, 9, 17), size, how=settings)
    body = header.pack()
    assert (body[10], body[11]) == (bits, step_log2 | block_range << 7)
    assert header.stream_bytes == 20 + 16 + 4 * header.view.channels + 2 * 3 * (mode is Mode.BLPA) + size + 4
    assert Header.unpack(body + bytes(header.stream_bytes - len(body))) == header


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
    st.sampled_from([Mode.SFPR, Mode.BRC, Mode.BYPASS]),
    st.sampled_from(Dtype),
)
def test_header_round_trip(shape, mode, dtype):
    size = MatrixView.of(shape, mode).payload_bounds(dtype)[0]
    header = Header(mode, dtype, tuple(shape), size)
    body = header.pack()
    assert Header.unpack(body + bytes(header.stream_bytes - len(body))) == header
    with pytest.raises(BitstreamError):
        Header.unpack(body + bytes(header.stream_bytes - len(body) + 1))


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": Mode.SFPR, "shape": (), "payload_bytes": 8},
        {"mode": Mode.SFPR, "shape": (0,), "payload_bytes": 0},
        {"mode": Mode.SFPR, "shape": (2**32,), "payload_bytes": 2**32},
        {"mode": Mode.SFPR, "shape": (8,), "payload_bytes": 7},
        {"mode": Mode.SFPR, "shape": (8,), "payload_bytes": 8, "const_bits": 12},
        {"mode": Mode.BYPASS, "shape": (8,), "payload_bytes": 8},
        {"mode": Mode.BYPASS, "shape": (8,), "payload_bytes": 16},
        {"mode": Mode.BYPASS, "shape": (8,), "payload_bytes": 32, "const_bits": 12},
        {"mode": Mode.JPEG_ACT, "shape": (8, 8), "payload_bytes": 8, "const_bits": 12},
        {"mode": Mode.JPEG_ACT, "shape": (1, 1, 8, 8), "payload_bytes": 73, "const_bits": 12},
        {"mode": Mode.JPEG_ACT, "shape": (1, 1, 8, 8), "payload_bytes": 8, "const_bits": 7},
    ],
)
def test_impossible_headers(arguments):
    with pytest.raises(BitstreamError):
        Header(dtype=Dtype.FP32, **arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scale_bits": 12}, "scale_bits = 12 is not allowed: use 24, 11, 8"),
        ({"reciprocal_bits": 11}, "reciprocal_bits = 11 is not allowed: use 0, 24, 16, 12"),
        ({"reciprocal_bits": 12, "modes": ("sfpr", "actnn")}, "reciprocal_bits = 12 is not allowed with affine modes"),
        ({"const_bits": 14}, "const_bits = 14 is not allowed: use 8 to 13"),
        ({"const_bits": True}, "const_bits = True is not allowed: use a whole number"),
        ({"pass1_bits": -1}, "pass1_bits = -1"),
        ({"rounding": "up"}, "rounding = 'up' is not allowed: use trunc, half_away"),
        ({"value_format": "fp64"}, "value_format = 'fp64'"),
        ({"modes": ()}, "modes = "),
        ({"modes": ("zip",)}, "modes = "),
        ({"modes": ("brc", "brc")}, "each once"),
        ({"modes": (["brc"],)}, "modes = "),
        ({"name": "x" * 65}, "64 at most"),
        ({"modes": ("bypass",)}, "modes = "),
        ({"modes": ("mx",)}, "modes = mx is not allowed, for nothing would pass the CDUs"),
        ({"modes": ("bypass", "mx")}, "add a mode, or take the blocks mx_encoder and mx_decoder"),
        ({"cdus": 0}, "use 1 to 8"),
        ({"cdus": 9}, "use 1 to 8"),
        ({"cdus": 2.0}, "use a whole number"),
        ({"duplex": "simplex"}, "use full, half"),
        ({"value_port_bits": 36}, "use 0, 256, 512, 1024, 2048"),
        ({"value_format": "bf16", "value_port_bits": 2048}, "use 0, 128, 256, 512, 1024"),
        ({"packed_port_bits": 100}, "use 0, 128, 256, 512, 1024"),
        ({"dct_stages": 2}, "dct_stages = 2 is not allowed: use 0 to 1"),
        ({"multiplier_stages": -1}, "use 0 to 1"),
        ({"register_slices": True}, "use a whole number"),
        ({"name": "1x"}, "name = '1x'"),
        ({"name": "CDU_DMA"}, "name = 'CDU_DMA' is not allowed, for the unit's header would replace the driver's cdu_dma.h"),
        ({"lanes": 8}, "'lanes' is not a parameter"),
    ],
)
def test_impossible_configurations(values, message):
    with pytest.raises(ConfigError, match=message):
        CduConfig().override(**values)


def test_configuration_from_a_file_and_texts(tmp_path):
    (tmp_path / "small.toml").write_text('scale_bits = 11\nmodes = ["brc", "sfpr"]\n')
    config = named_config(str(tmp_path / "small.toml"))
    assert (config.name, config.scale_bits, config.modes) == ("small", 11, ("sfpr", "brc"))
    assert config.override_texts({"const_bits": "13", "modes": "jpeg-act"}).modes == ("jpeg-act",)
    with pytest.raises(ConfigError, match="whole number"):
        config.override_texts({"const_bits": "many"})
    with pytest.raises(ConfigError, match="unknown configuration 'big'"):
        named_config("big")
    (tmp_path / "bad.toml").write_text("scale_bits = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        named_config(str(tmp_path / "bad.toml"))


def test_a_unit_that_differs_has_a_name_that_says_so():
    assert [config.unit_name for config in CONFIGS.values()] == list(CONFIGS)
    assert CduConfig(cdus=3).unit_name == "tiny_cdus_3"
    assert (
        CONFIGS["paper"].override(duplex="half", modes=("sfpr+zvc", "brc")).unit_name == "paper_modes_sfpr_zvc_brc_duplex_half"
    )
    assert CONFIGS["tiny"].override(cdus=3, name="mine").unit_name == "mine"
    assert CONFIGS["tiny"].override(cdus=3).override(cdus=1).unit_name == "tiny"
    assert CduConfig("small", cdus=2).unit_name == "small"


def test_names_of_units_are_different_and_short():
    labels = [mode.label for mode in Mode if mode is not Mode.MX]
    sets = [tuple(chosen) for count in range(1, 5) for chosen in combinations(labels, count) if set(chosen) != {"bypass"}]
    units = [CduConfig(modes=modes, cdus=cdus) for modes in sets for cdus in (1, 3)]
    names = [unit.unit_name for unit in units]
    assert len(set(names)) == len(set(units))
    assert all(name.isidentifier() and len(name) <= 64 for name in names)
    assert max(map(len, names)) > 40, "nothing is near the limit"
    long = CONFIGS["universal"].override(duplex="half", coders=("zvc", "gmc"), modes=tuple(labels[1:]), rounding="trunc")
    assert re.fullmatch(r"universal_[0-9a-f]{12}", long.unit_name)


@pytest.mark.parametrize(
    ("given", "values", "others"),
    [
        ({"coders": ("gmc",)}, {"modes": ("sfpr",)}, {"coders": ("zvc",)}),
        ({"modes": ("brc",)}, {"coders": ("gmc",)}, {"modes": ("jpeg-act", "brc")}),
        ({"reciprocal_bits": 16}, {"modes": ("actnn",)}, {"reciprocal_bits": 0}),
        ({"reciprocal_bits": 24}, {"modes": ("actnn",)}, {}),
        ({"value_port_bits": 2048}, {"value_format": "fp16"}, {"value_port_bits": 1024}),
        ({"value_format": "bf16", "value_port_bits": 128}, {"value_format": "fp32"}, {"value_port_bits": 256}),
        ({"completions": 8}, {"dma_bits": 64}, {"completions": 0}),
        ({"own_clocks": ("registers", "values"), "reset_kind": "async"}, {"dma_bits": 64}, {"own_clocks": ("registers",)}),
        ({"dma_bits": 64, "dma_words": 128}, {"dma_bits": 0}, {"dma_words": 0}),
        ({}, {"own_clocks": ("packed",)}, {"reset_kind": "async"}),
        ({"own_clocks": ("packed",), "reset_kind": "async"}, {"reset_kind": "sync"}, {"own_clocks": ()}),
        ({"own_clocks": ("packed",), "reset_kind": "async"}, {"cdus": 2}, {}),
    ],
)
def test_other_parameters_give_way(given, values, others):
    assert CduConfig(**given).adapted(**values) == CduConfig(**given | values | others)
