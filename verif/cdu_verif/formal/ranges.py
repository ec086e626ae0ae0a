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
#: Blocks that a range store has room for.
_SLOTS = 2 * TILE_BLOCKS
_RANGE_BITS = Range().size
_ENTRY_BITS = _RANGE_BITS + (TILE_BLOCKS - 1).bit_length()

#: Bits of a range that are followed, one of each field.
_BITS_FOLLOWED = (0, _BITS, _BITS + MANTISSA_BITS)

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
    **{f"{end}{stage}": _BITS for end in ("least", "most") for stage in (1, 2)},
    "waiting.i__payload": _RANGE_BITS + 2 * _BITS + TILE_BLOCKS.bit_length(),
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
    the range, ``B * D >= R``; and no code is decoded to more than 65535. Mean, least and greatest value stay as they are, for
    they are the statistics of a block.
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
  reg [{_BITS - 1}:0] spread1, spread2, low1, low2, least1, least2, most1, most2;
  reg [1:0] bits1, bits2;
  always @(posedge clk) if (inner_found__ready) begin
    full1 <= inner_found__valid; full2 <= full1;
    spread1 <= spread; spread2 <= spread1;
    low1 <= centred ? mean : least; low2 <= low1;
    least1 <= least; least2 <= least1; most1 <= most; most2 <= most1;
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
    ends1: assert (inner_least1 == least1 && inner_most1 == most1);
    ordered1: assert (centred1 || $signed(low1) + $signed({{1'b0, spread1}}) <= 32767);
  end
  always @* if (started & full2) begin
    held2: assert (inner_quotient2 == quotient && inner_low2 == low2);
    ends2: assert (inner_least2 == least2 && inner_most2 == most2);
    ordered2: assert (centred2 || $signed(low2) + $signed({{1'b0, spread2}}) <= 32767);
    bounds: assert (mantissa >= 1 && exponent <= {MAX_EXPONENT} && (exponent == 0 || mantissa[{MANTISSA_BITS - 1}]));
    least_step: assert (step >= need && step - need < (1 << exponent));
    covers: assert (reach >= spread2);
    fits: assert (centred2 || low + $signed(reach) <= 65535);
    low_kept: assert (low == low2);
    ends_kept: assert (inner_waiting__i__payload[{_RANGE_BITS} +: {2 * _BITS}] == {{most2, least2}});
  end
"""
    return with_assumptions(device, body)


def enclosing_harness(device: Device, beats: int, free_of_value: int, width: int | None = None) -> str:
    """Any value of any block lies between the least and the greatest value that are found for it.

    The values come in tiles of ``width`` blocks, of any number without, row by row; of each value the bits ``free_of_value``
    are free. How many statistics are found before those of the followed value is
    known when it enters.
    """
    blocks, ends = device.field("i__payload", "blocks"), device.field("i__payload", "ends")
    mode, count = device.field("i__payload", "tag", "mode"), device.field("i__payload", "count")
    size = LANES * _BITS
    values = f"i__payload[{size} * lane + {_BITS} * place +: {_BITS}]"
    least, most = (device.field("found__payload", "values", name) for name in ("least", "most"))
    limit = f"always @* if (i__valid) assume ({blocks} == {width});" if width else ""
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
  {limit}
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
    bits = next(int(port["width"]) for port in device.ports if port["name"] == "i__payload")
    others = ((1 << bits) - 1) & ~((1 << size * beats) - 1)
    values_free = sum(free_of_value << place for place in range(0, size * beats, _BITS))
    return with_assumptions(device, body, {"i__payload": others | values_free}, resets=False)


def _store_body(device: Device) -> str:
    """Tiles enter block by block; the ring holds the tiles that are complete and the blocks of the one that enters."""
    blocks, ends = device.field("i__payload", "blocks"), device.field("i__payload", "ends")
    fields = ", ".join(f"inner_ring[{_ENTRY_BITS * slot + _RANGE_BITS} +: 2]" for slot in reversed(range(_SLOTS)))
    sums = f"  wire [{2 * _SLOTS - 1}:0] ring_others = {{{fields}}};\n  wire [5:0] sum0 = 0;\n"
    for tile in range(_SLOTS):
        sums += f"""\
  wire [2:0] slot{tile} = inner_read_slot + sum{tile};
  wire [1:0] others{tile} = ring_others[{{slot{tile}, 1'b0}} +: 2];
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
  wire [1:0] others = ring_others[{{first, 1'b0}} +: 2];
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


def order_probes(beats: int) -> dict[str, int]:
    """What is seen of a range store whose order is proven."""
    words = BLOCK_SIDE * TILE_BLOCKS // beats
    return {**STORE_PROBES, "present": 1, "ranges": TILE_BLOCKS * _RANGE_BITS, "number": (words - 1).bit_length()}


def store_order(device: Device, beats: int) -> str:
    """Beats leave with the range that came with their block; in mode actnn with that of the first block of their tile.

    Tiles are assumed to leave as they entered, which is a property of the alignment buffer between. The tile that is followed
    is the one of any number, modulo 16; at most 9 tiles are there. The helper invariants say where its range stands.
    """

    def seen(name: str, at: int = 0) -> str:
        return f"{{{', '.join(f'{name}[{at + bit}]' for bit in _BITS_FOLLOWED)}}}"

    def each(name: str, count: int, size: int) -> str:
        return f"{{{', '.join(seen(name, place * size) for place in reversed(range(count)))}}}"

    i_mode, blocks = device.field("i__payload", "tag", "mode"), device.field("i__payload", "blocks")
    given = device.field("i__payload", "range")
    tile_mode, out_width, ends = (
        device.field("from_alignment__payload", *path) for path in (("tag", "mode"), ("blocks",), ("ends",))
    )
    lanes = "".join(
        f"""\
  wire [5:0] place{lane} = beat + {lane};
  wire [1:0] block{lane} = out_width == 1 ? 0 : out_width == 2 ? place{lane}[0] : out_width == 3 ? place{lane} % 3
    : place{lane};
  wire [{_RANGE_BITS - 1}:0] range{lane} = {device.field("o__payload", "ranges", element=lane)};
  always @* if (started & ~rst & o__valid & tiles_out == followed & block{lane} == block) lane{lane}:
    assert ({seen(f"range{lane}")} == held);
"""
        for lane in range(beats)
    )
    starts = "".join(
        f"    if (index == {tile}) begin start = slot{tile}; start_others = others{tile}; end\n" for tile in range(_SLOTS)
    )
    body = f"""\
{_store_body(device)}\
  (* anyconst *) wire [3:0] followed;
  (* anyconst *) wire [1:0] block;
  (* anyconst *) wire [3:0] mode;
  wire [1:0] source = mode == {Mode.ACTNN:d} ? 0 : block;
  reg [3:0] tiles_in, tiles_out;
  reg [2:0] followed_width;
  wire [{_RANGE_BITS - 1}:0] given = {given};
  reg [2:0] held;
  wire tile_enters = enters & entered + 1 == {blocks};
  wire enters_followed = tiles_in == followed;
  always @* if (i__valid & enters_followed) assume ({i_mode} == mode && block < {blocks});
  reg [5:0] beat;  // of the tile that leaves
  wire [2:0] out_width = {out_width};
  wire leaves = o__valid & o__ready;
  wire tile_leaves = beat + {beats} == {BLOCK_SIDE} * out_width;
  always @(posedge clk) begin
    tiles_in <= rst ? 0 : tiles_in + tile_enters;
    tiles_out <= rst ? 0 : tiles_out + (leaves & tile_leaves);
    beat <= rst ? 0 : ~leaves ? beat : tile_leaves ? 0 : beat + {beats};
    if (enters & enters_followed) begin
      followed_width <= {blocks};
      if (entered == source) held <= {seen("given")};
    end
  end
  always @* if (from_alignment__valid) begin
    assume (tiles_out != tiles_in && out_width >= 1 && out_width <= {TILE_BLOCKS} && {ends} == tile_leaves);
    if (tiles_out == followed) assume (out_width == followed_width && {tile_mode} == mode);
  end
{lanes}\
  wire [3:0] there = tiles_in - tiles_out, index = followed - tiles_out - inner_present;
  wire waits = index < inner_complete, leaving = inner_present & followed == tiles_out;
  reg [2:0] start;
  reg [1:0] start_others;
  always @* begin
    start = first; start_others = followed_width - 1;
    if (waits) begin
{starts}    end
  end
  wire [2:0] slot = start + source;
  wire [{3 * _SLOTS - 1}:0] in_ring = {each("inner_ring", _SLOTS, _ENTRY_BITS)};
  wire [{3 * TILE_BLOCKS - 1}:0] in_registers = {each("inner_ranges", TILE_BLOCKS, _RANGE_BITS)};
  wire [2:0] kept = in_ring >> 3 * slot, leaving_range = in_registers >> 3 * source;
  wire [{(BLOCK_SIDE * TILE_BLOCKS // beats - 1).bit_length() - 1}:0] number = beat / {beats};
  always @* if (started) begin
    tiles: assert (there == inner_complete + inner_present);
    counted: assert (beat % {beats} == 0 && inner_number == number && (inner_present || beat == 0));
    if (enters_followed & entered != 0) entering: assert (followed_width == width && block < width);
    if (enters_followed & entered > source) entered_range: assert (kept == held);
    if (waits) waiting: assert (kept == held && start_others == followed_width - 1);
    if (waits | leaving) widths: assert (followed_width >= 1 && followed_width <= {TILE_BLOCKS} && block < followed_width);
    if (leaving) out: assert (leaving_range == held && beat < {BLOCK_SIDE} * followed_width);
  end
"""
    free = one_bit_each(device, "i__payload", LANES * VALUE_BITS)
    beside = one_bit_each(device, "from_alignment__payload", LANES * VALUE_BITS)
    return with_assumptions(device, body, {"i__payload": free, "from_alignment__payload": beside})


def join_rules(device: Device) -> str:
    """The stream rules in modes with ranges; in the other ones the range of a word means nothing and may change."""
    mode = device.field("i__payload", "tag", "mode")
    ranged = " || ".join(f"{mode} == {mode_with_range:d}" for mode_with_range in (Mode.DIVISION, Mode.ACTNN))
    return stream_harness(device, body=f"  always @* if (i__valid) assume ({ranged});\n")
