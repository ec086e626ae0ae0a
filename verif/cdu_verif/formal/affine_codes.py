"""Affine quantiser and dequantiser against their definitions, stage by stage, for all inputs and any stalls.

A reference computes what every register of a lane must hold; that it does is proven for one transfer of the pipeline after the
other, so that both sides of a multiplication have the same operands.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdu_spec.affine import (
    BASE_BITS,
    DECODED_BITS,
    FRACTION_BITS,
    MANTISSA_BITS,
    MAX_EXPONENT,
    RECIPROCAL_SHIFT,
    reciprocal,
)
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.randomness import ROTATIONS, ROUND_CONSTANTS, SBOX, SECOND_ROTATION, STATE_WORDS, WORD_BITS

from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions

_ROUNDS = len(ROUND_CONSTANTS)
#: The first round of each stage of the quantiser, and one behind the last.
_CUTS = tuple(_ROUNDS * part // 3 for part in range(4))
_STATE_BITS = STATE_WORDS * WORD_BITS

#: What is seen of a quantiser.
QUANTIZER_PROBES = {
    "valid": 4,
    "under_way": 4,
    "number": 3,
    "inverse1": 17,
    "shift1": 5,
    "shift2": 5,
    **{f"{name}{stage}": 1 for name in ("signed", "random", "nearest") for stage in (1, 2, 3)},
    **{f"bits{stage}": 2 for stage in (1, 2, 3)},
    **{f"state{stage}": _STATE_BITS for stage in (1, 2, 3)},
    **{f"distance{lane}_1": BASE_BITS for lane in range(LANES)},
    **{f"product{lane}": 32 for lane in range(LANES)},
    **{f"quotient{lane}": 25 for lane in range(LANES)},
}

#: What is seen of a dequantiser.
DEQUANTIZER_PROBES = {
    "valid": 2,
    "low1": DECODED_BITS,
    "exponent1": 4,
    "mantissa": MANTISSA_BITS,
    **{f"code{lane}": VALUE_BITS for lane in range(LANES)},
    **{f"product{lane}": 16 for lane in range(LANES)},
}


def _random_rounds() -> str:
    """Verilog of ``random_round``: one round on the state, column by column through the table."""
    table = sum(value << 4 * place for place, value in enumerate(SBOX))
    columns = "".join(
        f"  wire [3:0] column{bit} = 64'h{table:x} >> {{w3[{bit}], w2[{bit}], w1[{bit}], w0[{bit}], 2'd0}};\n"
        for bit in range(WORD_BITS)
    )
    words = [", ".join(f"column{bit}[{place}]" for bit in reversed(range(WORD_BITS))) for place in range(STATE_WORDS)]
    rotated = "".join(
        f"  wire [{WORD_BITS - 1}:0] t{place} = {{{words[place]}}};\n"
        f"  wire [{WORD_BITS - 1}:0] r{place} = {{t{place}, t{place}}} >> {WORD_BITS - rotation};\n"
        for place, rotation in enumerate(ROTATIONS)
    )
    return f"""\
module random_round #(parameter CONSTANT = 0) (input [{_STATE_BITS - 1}:0] i, output [{_STATE_BITS - 1}:0] o);
  wire [{WORD_BITS - 1}:0] w0, w1, w2, w3;
  assign {{w3, w2, w1, w0}} = i ^ CONSTANT;
{columns}{rotated}  assign o = {{r3, r2, r1, r0}};
endmodule
"""


def _one_of(mode: str, modes: Iterable[Mode]) -> str:
    return f"({' || '.join(f'{mode} == {one:d}' for one in modes)})"


def _settings(device: Device, *path: str, modes: tuple[Mode, ...], statistics: str = "1'b0") -> str:
    """What the settings of an input say, by the definition: found step, greatest code, and whether they are allowed.

    Blocks of mode division may be ``statistics``, which pass as values of other modes do.
    """
    mode = device.field("i__payload", *path, "mode")
    quantizer = {
        name: device.field("i__payload", *path, "quantizer", name)
        for name in ("bits_log2", "step_log2", "stochastic", "block_range")
    }
    found_range = {name: device.field("i__payload", "range", name) for name in ("low", "mantissa", "exponent")}
    return f"""\
  wire [3:0] mode = {mode};
  wire [1:0] bits_log2 = {quantizer["bits_log2"]};
  wire [3:0] step_log2 = {quantizer["step_log2"]};
  wire stochastic = {quantizer["stochastic"]}, block_range = {quantizer["block_range"]};
  wire signed [{BASE_BITS - 1}:0] low = {found_range["low"]};
  wire [{MANTISSA_BITS - 1}:0] mantissa = {found_range["mantissa"]};
  wire [3:0] exponent = {found_range["exponent"]};
  wire statistics = mode == {Mode.DIVISION:d} && {statistics};
  wire affine = {_one_of("mode", [mode for mode in modes if mode.is_affine])} && !statistics;
  wire [3:0] bits = 1 << bits_log2;
  wire [7:0] most_code = (1 << bits) - 1;
  wire centred = mode == {Mode.DIVISION:d} && !block_range;
  wire found = mode == {Mode.ACTNN:d} || (mode == {Mode.DIVISION:d} && block_range);
  always @* if (i__valid) begin
    assume ({_one_of("mode", modes)});
    if (affine && !found) assume (bits + step_log2 <= {BASE_BITS} && (!centred || step_log2 >= 1));
    if (statistics) assume (!block_range);
    if (found) assume (mantissa >= 1 && exponent <= {MAX_EXPONENT});
  end
  wire signed [39:0] wide_low = low;
  wire signed [39:0] fixed_low = -(1 << (bits - 1 + step_log2));
"""


def quantizer_harness(device: Device, modes: tuple[Mode, ...], lanes: tuple[int, ...]) -> str:
    """``code = min(B, (((t * inv) >> shift) + rho) >> 16)``, ``t = clamp(x - Z, 0, 65535)``, in some ``lanes``; never above B.

    In mode autoquantz the code is given less half of their number, in two's complement. Values of other modes pass.
    """
    table = "\n".join(
        f"      {mantissa}: reciprocal = {reciprocal(mantissa)};"
        for mantissa in range(1 << (MANTISSA_BITS - 1), 1 << MANTISSA_BITS)
    )
    normal = "\n".join(
        f"      if (mantissa[{place}]) begin normal = mantissa << {MANTISSA_BITS - 1 - place};"
        f" found_shift = {RECIPROCAL_SHIFT - FRACTION_BITS - (MANTISSA_BITS - 1 - place)} + exponent; end"
        for place in range(MANTISSA_BITS)
    )
    rounds = "".join(
        f"  wire [{_STATE_BITS - 1}:0] after{number};\n"
        f"  random_round #(.CONSTANT({constant})) round{number} (.i({_before(number)}), .o(after{number}));\n"
        for number, constant in enumerate(ROUND_CONSTANTS)
    )
    lines = [
        _settings(device, "tag", modes=modes, statistics=device.field("i__payload", "tag", "quantizer", "statistics")),
        f"""\
  reg [7:0] normal;
  reg [5:0] found_shift;
  always @* begin
    normal = 128; found_shift = 0;
{normal}
  end
  reg [16:0] reciprocal;
  always @* begin
    reciprocal = 0;
    case (normal)
{table}
    endcase
  end
  wire advance = ~o__valid | o__ready;
  wire [16:0] inverse = found ? reciprocal : 65536;
  wire [4:0] shift = found ? found_shift : affine ? step_log2 : 0;
  wire signed [39:0] begin_of_range = found ? wide_low
    : centred ? wide_low - ((most_code << step_log2) >> 1) : fixed_low;
  wire draws = affine && stochastic && mode != {Mode.BLPA:d}, nearest = affine && !stochastic && mode != {Mode.BLPA:d};
  wire in_signed = mode == {Mode.AUTOQUANTZ:d};
  reg [2:0] row;
  always @(posedge clk) row <= rst ? 0 : ~(i__valid & i__ready) ? row : {device.field("i__payload", "ends")} ? 0 : row + 1;
  wire [{_STATE_BITS - 1}:0] counted = {{{device.field("i__payload", "seed")}, {device.field("i__payload", "number")}, row}};
  reg [{_STATE_BITS - 1}:0] state1, state2, state3;
{rounds}
  always @(posedge clk) if (advance) begin
    state1 <= after{_CUTS[1] - 1}; state2 <= after{_CUTS[2] - 1}; state3 <= after{_CUTS[3] - 1};
  end
  reg [4:1] full = 0;
  always @(posedge clk) if (rst) full <= 0; else if (advance) full <= {{full[3:1], i__valid}};
  always @* if (started) begin
    same: assert (inner_valid == full && inner_under_way == full && inner_number == row);
  end
""",
    ]
    for name, width, stages, begin in (
        ("bits_log2", 2, 4, "bits_log2"),
        ("affine", 1, 4, "affine"),
        ("draws", 1, 3, "draws"),
        ("nearest", 1, 3, "nearest"),
        ("in_signed", 1, 4, "in_signed"),
        ("shift", 5, 2, "shift"),
        ("inverse", 17, 1, "inverse"),
    ):
        names = [f"{name}_at{stage}" for stage in range(1, stages + 1)]
        lines.append(f"  reg [{width - 1}:0] {', '.join(names)};\n  always @(posedge clk) if (advance) begin")
        lines += [f"    {after} <= {before};" for before, after in zip([begin, *names], names, strict=False)]
        lines.append("  end")
    for stage in (1, 2, 3):
        lines.append(f"""\
  always @* if (started & full[{stage}]) begin
    settings{stage}: assert (inner_signed{stage} == in_signed_at{stage} && inner_random{stage} == draws_at{stage}
      && inner_nearest{stage} == nearest_at{stage} && inner_bits{stage} == (affine_at{stage} ? bits_log2_at{stage} : 3)
      && (affine_at{stage} || ~(in_signed_at{stage} | draws_at{stage} | nearest_at{stage}))
      && ~(draws_at{stage} & nearest_at{stage}));
    state{stage}_same: assert (inner_state{stage} == state{stage});
  end""")
    lines.append("""\
  always @* if (started & full[1]) step1: assert (inner_inverse1 == inverse_at1 && inner_shift1 == shift_at1
    && (inverse_at1[16] == 0 || inverse_at1[15:0] == 0));
  always @* if (started & full[2]) step2: assert (inner_shift2 == shift_at2);""")
    words = [f"state3[{WORD_BITS * place} +: {WORD_BITS}]" for place in range(STATE_WORDS)]
    for lane in lanes:
        value = f"$signed({device.field('i__payload', 'values', element=lane)})"
        word = words[lane % STATE_WORDS]
        drawn = word
        if lane >= STATE_WORDS:
            rest = WORD_BITS - SECOND_ROTATION
            low = f"state3[{WORD_BITS * (lane % STATE_WORDS)} +: {rest}]"
            high = f"state3[{WORD_BITS * (lane % STATE_WORDS) + rest} +: {SECOND_ROTATION}]"
            drawn = f"({{{low}, {high}}} ^ {words[(lane + 1) % STATE_WORDS]})"
        out = f"o__payload[{lane * VALUE_BITS} +: {VALUE_BITS}]"
        lines.append(f"""\
  wire signed [39:0] far{lane} = {value} - begin_of_range;
  wire [15:0] near{lane} = {value};
  wire [15:0] t{lane} = ~affine ? near{lane}[7:0] : far{lane} < 0 ? 0 : far{lane} > 65535 ? 65535 : far{lane};
  reg [15:0] t{lane}_at1;
  reg [31:0] product{lane}, v{lane};
  reg [7:0] pass{lane}_1, pass{lane}_2, pass{lane}_3, pass{lane}_4, code{lane};
  wire [15:0] rho{lane} = draws_at3 ? {drawn} : nearest_at3 ? 32768 : 0;
  wire [3:0] width{lane} = 1 << bits_log2_at3;
  wire [7:0] most{lane} = (1 << width{lane}) - 1;
  wire [32:0] whole{lane} = ({{1'b0, v{lane}}} + rho{lane}) >> 16;
  wire [7:0] unsigned{lane} = whole{lane} > most{lane} ? most{lane} : whole{lane};
  always @(posedge clk) if (advance) begin
    t{lane}_at1 <= t{lane};
    product{lane} <= inner_inverse1[16] ? inner_distance{lane}_1 << 16 : inner_distance{lane}_1 * inner_inverse1[15:0];
    v{lane} <= inner_product{lane} >> inner_shift2;
    code{lane} <= in_signed_at3 ? (unsigned{lane} ^ (1 << (width{lane} - 1))) & most{lane} : unsigned{lane};
    pass{lane}_1 <= near{lane}[7:0]; pass{lane}_2 <= pass{lane}_1; pass{lane}_3 <= pass{lane}_2; pass{lane}_4 <= pass{lane}_3;
  end
  always @* if (started & full[1]) distance{lane}: assert (inner_distance{lane}_1 == t{lane}_at1
    && (affine_at1 || t{lane}_at1 == pass{lane}_1));
  always @* if (started & full[1] & ~affine_at1) unit{lane}: assert (inverse_at1 == 65536 && shift_at1 == 0);
  always @* if (started & full[2]) multiplied{lane}: assert (inner_product{lane} == product{lane}
    && (affine_at2 || (product{lane} == {{8'd0, pass{lane}_2, 16'd0}} && shift_at2 == 0)));
  always @* if (started & full[3]) shifted{lane}: assert (inner_quotient{lane} == {{|v{lane}[31:24], v{lane}[23:0]}}
    && (affine_at3 || v{lane} == {{8'd0, pass{lane}_3, 16'd0}}));
  always @* if (started & full[4]) begin
    lane{lane}: assert ({out} == (affine_at4 ? code{lane} : pass{lane}_4));
    at_most_B{lane}: assert (~affine_at4 || ({out} >> (1 << bits_log2_at4)) == 0);
  end""")
    return _random_rounds() + with_assumptions(device, "\n".join(lines) + "\n")


def _before(number: int) -> str:
    """What a round works on: the state after the one before, which a register may hold."""
    if number == 0:
        return "counted"
    return f"state{_CUTS.index(number)}" if number in _CUTS else f"after{number - 1}"


def dequantizer_harness(device: Device, modes: tuple[Mode, ...], lanes: tuple[int, ...]) -> str:
    """``y = Z + code * D`` in integers of 40 bits is what leaves in 17, in some ``lanes``, and not the least number of these.

    Of ranges that are found ``Z + B * D`` is at most 65535, which is proven of the range finder; codes are at most B.
    """
    has_offset = Mode.BLPA in modes
    offset = f"$signed({device.field('i__payload', 'offset')})" if has_offset else "0"
    lines = [
        _settings(device, modes=modes),
        f"""\
  wire advance = ~o__valid | o__ready;
  wire signed [39:0] half = step_log2 == 0 ? 0 : 1 << (step_log2 - 1);
  wire signed [39:0] offset = {offset};
  wire signed [39:0] middle = wide_low - ((most_code << step_log2) >> 1);
  wire signed [39:0] z = found ? wide_low : centred ? middle
    : fixed_low + (mode == {Mode.BLPA:d} ? offset + half : 0);
  wire [7:0] m = found ? mantissa : 1;
  wire [3:0] e = found ? exponent : affine ? step_log2 : 0;
  wire [15:0] limit = inner_mantissa * most_code;
  wire [31:0] reach_of_codes = limit << e;
  wire signed [39:0] reach = wide_low + $signed({{8'd0, reach_of_codes}});
  reg signed [39:0] limit1;
  always @* if (i__valid & found) assume (reach <= 65535);
  reg signed [39:0] z1;
  reg [3:0] e1;
  reg [2:1] full = 0;
  always @(posedge clk) begin
    if (advance) begin z1 <= affine ? z : -{1 << (VALUE_BITS - 1)}; e1 <= e;
      limit1 <= affine ? limit : {(1 << VALUE_BITS) - 1}; end
    if (rst) full <= 0; else if (advance) full <= {{full[1], i__valid}};
  end
  always @* if (started) same: assert (inner_valid == full);
  always @* if (started & full[1]) first: assert ($signed(inner_low1) == z1 && inner_exponent1 == e1);
  always @* if (started & full[1]) limits: assert (z1 >= -65535 && z1 + $signed(limit1 << e1) <= 65535);
""",
    ]
    for lane in lanes:
        code = device.field("i__payload", "values", element=lane)
        out = device.field("o__payload", "values", element=lane)
        lines.append(f"""\
  wire [7:0] code{lane} = affine ? {code} : {code} + {1 << (VALUE_BITS - 1)};
  always @* if (i__valid & affine) assume (code{lane} <= most_code);
  always @* if (started & i__valid) operands{lane}: assert (inner_code{lane} == code{lane} && inner_mantissa == m);
  reg [15:0] product{lane};
  reg signed [39:0] y{lane};
  wire [39:0] distance{lane} = {{24'd0, product{lane}}} << e1;
  wire signed [39:0] sum{lane} = z1 + $signed(distance{lane});
  always @(posedge clk) if (advance) begin product{lane} <= inner_code{lane} * inner_mantissa; y{lane} <= sum{lane}; end
  always @* if (started & full[1]) begin
    multiplied{lane}: assert (inner_product{lane} == product{lane});
    monotone{lane}: assert (product{lane} <= limit1);
    within{lane}: assert (sum{lane} >= -65535 && sum{lane} <= 65535);
  end
  always @* if (started & full[2]) begin
    lane{lane}: assert ($signed({out}) == y{lane} && y{lane} >= -65535 && y{lane} <= 65535);
  end""")
    return with_assumptions(device, "\n".join(lines) + "\n")
