"""Ranges of blocks: how they are found, that their steps cover them, and where they wait."""

from __future__ import annotations

from cdu.words import Range
from cdu_spec.affine import CODE_BITS, MANTISSA_BITS, MAX_EXPONENT
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS, VALUE_BITS

from cdu_verif.formal.device import Device
from cdu_verif.formal.order import one_bit_each
from cdu_verif.formal.progress import progress_harness
from cdu_verif.formal.stream_rules import stream_harness, with_assumptions

#: Bits of a value.
_BITS = 16
#: Bits of every value that are free where values are only compared: they are of four sizes then, of both signs.
_FREE_OF_VALUE = 0x8001
#: Blocks that a range store has room for.
_SLOTS = 2 * TILE_BLOCKS
_RANGE_BITS = Range().size
_ENTRY_BITS = _RANGE_BITS + (TILE_BLOCKS - 1).bit_length()

#: What is seen of a range store.
STORE_PROBES = {
    "used": _SLOTS.bit_length(),
    "complete": _SLOTS.bit_length(),
    "write_slot": (_SLOTS - 1).bit_length(),
    "read_slot": (_SLOTS - 1).bit_length(),
    "block": (TILE_BLOCKS - 1).bit_length(),
    "ring": _SLOTS * _ENTRY_BITS,
}

#: What is seen of the arithmetic of a range finder.
STEP_PROBES = {
    "found__valid": 1,
    "found__ready": 1,
    "found__payload__values__least": _BITS,
    "found__payload__values__most": _BITS,
    "found__payload__values__total": _BITS + (BLOCK_VALUES - 1).bit_length(),
    "found__payload__quantizer__bits_log2": 2,
    "found__payload__quantizer__block_range": 1,
    "found__payload__mode": 4,
    "extent1": _BITS,
    "bits1": 2,
    "low1": _BITS,
    "quotient2": _BITS,
    "low2": _BITS,
    "waiting.i__payload": _RANGE_BITS + TILE_BLOCKS.bit_length(),
}


#: The two counters of a queue.
_ENDS = ("produce", "consume")
#: Queues in a range finder by the name of their signals, with their depths; the second one is there with P above 1 only.
_QUEUES = {"waiting": 4, "statistics.tiles": 2}


def _queue(path: str, depth: int) -> dict[str, int]:
    return {f"{path}.queue.level": depth.bit_length(), **{f"{path}.queue.{end}": (depth - 1).bit_length() for end in _ENDS}}


def finder_probes(beats: int) -> dict[str, int]:
    """What is seen of the queues of a range finder."""
    queues = list(_QUEUES.items())[: 1 if beats == 1 else 2]
    return {name: width for path, depth in queues for name, width in _queue(path, depth).items()}


def finder_rules(device: Device) -> str:
    """The stream rules, with what the counters of queues mean: so many places are taken between the one and the other."""
    seen = {probe.path for probe in device.probes}
    checks = ""
    for path, depth in _QUEUES.items():
        if f"{path}.queue.level" in seen:
            name = path.replace(".", "__")
            level, produce, consume = (f"inner_{name}__queue__{signal}" for signal in ("level", *_ENDS))
            bits = (depth - 1).bit_length()
            checks += f"""\
  wire [{bits - 1}:0] ahead_{name} = {produce} - {consume};
  always @* if (started) queue_{name}: assert ({level} <= {depth} && {level} % {depth} == ahead_{name});
"""
    return stream_harness(device, body=checks)


def step_harness(device: Device) -> str:
    """From least and greatest value to the step, with any stalls.

    ``D = m * 2**e`` is the least number with so many significant bits that is not below ``max(1, ceil(R / B))``. So it covers
    the range, ``B * D >= R``; and no code is decoded to more than 65535.
    """
    cases = "".join(
        f"      {number}: begin most_code = {(1 << bits) - 1}; quotient = less2 / {(1 << bits) - 1}; end\n"
        for number, bits in enumerate(CODE_BITS)
    )
    values = "inner_found__payload__values__"
    body = f"""\
  wire signed [{_BITS - 1}:0] least = {values}least, most = {values}most;
  wire signed [31:0] total = $signed({values}total);
  always @* if (inner_found__valid) assume (most >= least);
  wire [31:0] mean = (total + {BLOCK_VALUES // 2}) >>> {(BLOCK_VALUES - 1).bit_length()};
  wire centred = inner_found__payload__mode == {Mode.DIVISION:d} && !inner_found__payload__quantizer__block_range;
  wire [{_BITS - 1}:0] spread = most - least;
  reg full1 = 0, full2 = 0, centred1, centred2;
  reg [{_BITS - 1}:0] spread1, spread2, low1, low2;
  reg [1:0] bits1, bits2;
  always @(posedge clk) if (inner_found__ready) begin
    full1 <= inner_found__valid; full2 <= full1;
    spread1 <= spread; spread2 <= spread1;
    low1 <= centred ? mean : least; low2 <= low1;
    bits1 <= inner_found__payload__quantizer__bits_log2; bits2 <= bits1;
    centred1 <= centred; centred2 <= centred1;
  end
  reg [7:0] most_code;
  reg [{_BITS - 1}:0] quotient;
  wire [{_BITS - 1}:0] less1 = spread1 == 0 ? 0 : spread1 - 1, less2 = spread2 == 0 ? 0 : spread2 - 1;
  always @* begin
    most_code = 0; quotient = 0;
    case (bits2)
{cases}    endcase
  end
  wire [{_BITS}:0] need = quotient + 1;  // max(1, ceil(R / B))
  wire signed [{_BITS - 1}:0] low = inner_waiting__i__payload[0 +: {_BITS}];
  wire [{MANTISSA_BITS - 1}:0] mantissa = inner_waiting__i__payload[{_BITS} +: {MANTISSA_BITS}];
  wire [3:0] exponent = inner_waiting__i__payload[{_BITS + MANTISSA_BITS} +: 4];
  wire [31:0] step = mantissa << exponent;
  wire [31:0] reach = step * most_code;
  always @* if (started & full1) begin
    held1: assert (inner_extent1 == less1 && inner_bits1 == bits1 && inner_low1 == low1);
    ordered1: assert (centred1 || $signed(low1) + $signed({{1'b0, spread1}}) <= 32767);
  end
  always @* if (started & full2) begin
    held2: assert (inner_quotient2 == quotient && inner_low2 == low2);
    ordered2: assert (centred2 || $signed(low2) + $signed({{1'b0, spread2}}) <= 32767);
    bounds: assert (mantissa >= 1 && exponent <= {MAX_EXPONENT} && (exponent == 0 || mantissa[{MANTISSA_BITS - 1}]));
    least_step: assert (step >= need && step - need < (1 << exponent));
    covers: assert (reach >= spread2);
    fits: assert (centred2 || low + $signed(reach) <= 65535);
    low_kept: assert (low == low2);
  end
"""
    return with_assumptions(device, body)


def enclosing_harness(device: Device, beats: int) -> str:
    """Any value of any block lies between the least and the greatest value that are found for it.

    The values come in tiles of any width row by row. How many statistics are found before those of the followed value is
    known when it enters.
    """
    blocks, ends = device.field("i__payload", "blocks"), device.field("i__payload", "ends")
    mode, count = device.field("i__payload", "tag", "mode"), device.field("i__payload", "count")
    size = LANES * _BITS
    values = f"i__payload[{size} * lane + {_BITS} * place +: {_BITS}]"
    least, most = (device.field("found__payload", "values", name) for name in ("least", "most"))
    body = f"""\
  (* anyconst *) wire [2:0] lane;
  (* anyconst *) wire [2:0] place;
  (* anyseq *) wire choose;
  always @* assume (lane < {beats});
  wire enters = i__valid & i__ready;
  reg [5:0] beat;  // of the tile
  reg [2:0] width;
  reg [3:0] tile_mode;
  wire tile_ends = beat + {beats} == {BLOCK_SIDE} * {blocks};
  wire common = {mode} == {Mode.ACTNN:d};
  always @(posedge clk) begin
    beat <= rst ? 0 : ~enters ? beat : tile_ends ? 0 : beat + {beats};
    if (enters) begin width <= {blocks}; tile_mode <= {mode}; end
  end
  always @* if (i__valid) begin
    assume ({blocks} >= 1 && {blocks} <= {TILE_BLOCKS} && {count} == {beats} && {ends} == tile_ends);
    assume ({mode} == {Mode.ACTNN:d} || {mode} == {Mode.DIVISION:d});
    assume (beat == 0 || ({blocks} == width && {mode} == tile_mode));
  end
  reg [5:0] due;  // statistics of the tiles that have entered, not yet taken
  wire found = found__valid & found__ready;
  reg followed = 0;
  reg [5:0] ahead;
  reg signed [{_BITS - 1}:0] value;
  wire chosen = enters & choose & ~followed;
  always @(posedge clk) begin
    due <= rst ? 0 : due + (enters & tile_ends ? (common ? 1 : {blocks}) : 0) - found;
    followed <= ~rst & (chosen | (followed & ~(found & ahead == 0)));
    if (chosen) begin ahead <= due + (common ? 0 : (beat + lane) % {blocks}) - found; value <= {values}; end
    else ahead <= ahead - found;
  end
  wire signed [{_BITS - 1}:0] least = {least}, most = {most};
  always @* if (started & ~rst & found__valid & followed & ahead == 0) begin
    encloses: assert (least <= value && value <= most);
  end
"""
    width = next(int(port["width"]) for port in device.ports if port["name"] == "i__payload")
    others = ((1 << width) - 1) & ~((1 << size * beats) - 1)
    values_free = sum(_FREE_OF_VALUE << place for place in range(0, size * beats, _BITS))
    return with_assumptions(device, body, {"i__payload": others | values_free}, resets=False)


def _store_body(device: Device) -> str:
    """Tiles enter block by block; the ring holds the tiles that are complete and the blocks of the one that enters."""
    blocks, ends = device.field("i__payload", "blocks"), device.field("i__payload", "ends")
    sums = "  wire [5:0] sum0 = 0;\n"
    for tile in range(_SLOTS):
        sums += f"""\
  wire [2:0] slot{tile} = inner_read_slot + sum{tile};
  wire [1:0] others{tile} = inner_ring >> ({_ENTRY_BITS} * slot{tile} + {_RANGE_BITS});
  wire [5:0] sum{tile + 1} = sum{tile} + (inner_complete > {tile} ? others{tile} + 1 : 0);
"""
    return f"""\
  wire enters = i__valid & i__ready & {ends};
  reg [1:0] entered;  // blocks of the tile that enters
  reg [2:0] width;
  always @(posedge clk) begin
    entered <= rst ? 0 : ~enters ? entered : entered + 1 == {blocks} ? 0 : entered + 1;
    if (i__valid & i__ready) width <= {blocks};
  end
  always @* if (i__valid) assume ({blocks} >= 1 && {blocks} <= {TILE_BLOCKS} && (entered == 0 || {blocks} == width));
{sums}  wire [2:0] first = inner_read_slot + sum{_SLOTS};
  wire [1:0] others = inner_ring >> ({_ENTRY_BITS} * first + {_RANGE_BITS});
  wire [2:0] free = inner_read_slot + inner_used;
  always @* if (started) begin
    within: assert (inner_used <= {_SLOTS} && inner_complete <= {_SLOTS});
    amount: assert (inner_used == sum{_SLOTS} + entered && entered == inner_block);
    place: assert (inner_write_slot == free);
    if (entered != 0) begun: assert (entered < width && width <= {TILE_BLOCKS} && others == width - 1);
  end
"""


def store_rules(device: Device) -> str:
    """The stream rules, and the ring never holds more blocks than it has entries."""
    return stream_harness(device, body=_store_body(device))


def store_progress(device: Device, cycles: int) -> str:
    """With all inputs offered and all outputs accepted something moves."""
    return progress_harness(device, cycles, limits=_store_body(device))


def store_order(device: Device, beats: int) -> str:
    """Beats leave with the range that came with their block; in mode actnn with that of the first block of their tile.

    Tiles leave as they entered: the alignment buffer between is proven to keep their order.
    """

    def fields(port: str) -> dict[str, str]:
        return {
            "blocks": device.field(port, "blocks"),
            "ends": device.field(port, "ends"),
            "mode": device.field(port, "tag", "mode"),
        }

    i, tile = fields("i__payload"), fields("from_alignment__payload")
    given = device.field("i__payload", "range")
    out = "".join(
        f"    if ((beat + {lane}) % out_width == block) lane{lane}:"
        f" assert ({device.field('o__payload', 'ranges', element=lane)} == held);\n"
        for lane in range(beats)
    )
    body = f"""\
  (* anyconst *) wire [3:0] chosen_tile;
  (* anyconst *) wire [1:0] block;
  (* anyconst *) wire [3:0] mode;
  wire [1:0] source = mode == {Mode.ACTNN:d} ? 0 : block;
  wire enters = i__valid & i__ready & {i["ends"]};
  reg [1:0] entered;
  reg [2:0] width, chosen_width;
  reg [3:0] tiles_in, tiles_out;
  wire tile_enters = enters & entered + 1 == {i["blocks"]};
  reg [{_RANGE_BITS - 1}:0] held;
  always @* if (i__valid) assume ({i["blocks"]} >= 1 && {i["blocks"]} <= {TILE_BLOCKS}
    && (entered == 0 || ({i["blocks"]} == width)));
  always @* if (i__valid & tiles_in == chosen_tile) begin
    assume ({i["mode"]} == mode && block < {i["blocks"]});
  end
  reg [5:0] beat;  // of the tile that leaves
  wire leaves = o__valid & o__ready;
  wire [2:0] out_width = {tile["blocks"]};
  wire tile_leaves = beat + {beats} == {BLOCK_SIDE} * out_width;
  always @(posedge clk) begin
    entered <= rst ? 0 : ~enters ? entered : tile_enters ? 0 : entered + 1;
    if (i__valid & i__ready) width <= {i["blocks"]};
    tiles_in <= rst ? 0 : tiles_in + tile_enters;
    tiles_out <= rst ? 0 : tiles_out + (leaves & tile_leaves);
    beat <= rst ? 0 : ~leaves ? beat : tile_leaves ? 0 : beat + {beats};
    if (enters & tiles_in == chosen_tile) begin
      chosen_width <= {i["blocks"]};
      if (entered == source) held <= {given};
    end
  end
  always @* if (from_alignment__valid) begin
    assume (tiles_out != tiles_in && out_width >= 1 && out_width <= {TILE_BLOCKS} && {tile["ends"]} == tile_leaves);
    if (tiles_out == chosen_tile) assume (out_width == chosen_width && {tile["mode"]} == mode);
  end
  always @* if (started & ~rst & o__valid & tiles_out == chosen_tile) begin
{out}  end
"""
    free = one_bit_each(device, "i__payload", LANES * VALUE_BITS) & one_bit_each(device, "i__payload", 10, "range")
    beside = one_bit_each(device, "from_alignment__payload", LANES * VALUE_BITS)
    return with_assumptions(device, body, {"i__payload": free, "from_alignment__payload": beside}, resets=False)


def join_rules(device: Device) -> str:
    """The stream rules in modes with ranges; in the other ones the range of a word means nothing and may change."""
    mode = device.field("i__payload", "tag", "mode")
    ranged = " || ".join(f"{mode} == {mode_with_range:d}" for mode_with_range in (Mode.DIVISION, Mode.ACTNN))
    return stream_harness(device, body=f"  always @* if (i__valid) assume ({ranged});\n")
