"""Nothing is lost, doubled or put in another order.

One item that enters is chosen freely and followed: how many items leave before it is known when it enters, and when these
have left, the next one must be it. As the choice is free this holds for all items. Items are followed by one bit of their
payload; the other bits take the same way, by the same selections.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS

from cdu_verif.formal import invariants
from cdu_verif.formal.device import Device
from cdu_verif.formal.invariants import ROW_BITS, select
from cdu_verif.formal.stream_rules import with_assumptions

#: Expects wires ``chosen`` (an item is chosen in this cycle), ``ahead_of_new`` (items before it), ``new_item`` (what is
#: followed of it), ``leaving`` (items that leave in this cycle), and gives ``active``, ``ahead`` and ``item``.
FOLLOW = """\
  reg followed = 0;
  reg [SIZE-1:0] ahead_later;
  reg [ITEM-1:0] item_later;
  wire active = followed | chosen;
  wire [SIZE-1:0] ahead = followed ? ahead_later : ahead_of_new;
  wire [ITEM-1:0] item = followed ? item_later : new_item;
  always @(posedge clk) begin
    followed <= active & ahead >= leaving & ~rst;
    ahead_later <= ahead - leaving;
    item_later <= item;
    inside <= rst ? 0 : inside + entering - leaving;
  end
  always @* if (started & ~rst) begin
    nothing_lost: assert (inside <= CAPACITY);
    nothing_doubled: assert (leaving <= inside + entering);
  end
"""


def transposer_harness(device: Device, width: int) -> str:
    """Value at ``column`` of row ``row`` of any block leaves in lane ``row`` of beat ``column`` of the same block."""
    body = f"""\
  localparam ITEM = {width}, CAPACITY = {2 * BLOCK_SIDE}, SIZE = 5;
  (* anyconst *) wire [2:0] row;
  (* anyconst *) wire [2:0] column;
  (* anyseq *) wire choose;
  reg [2:0] step;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = i__valid & i__ready, leaving = o__valid & o__ready;
  always @(posedge clk) step <= rst ? 0 : step + entering;
  wire chosen = entering != 0 & choose & ~followed & step == row;
  wire [SIZE-1:0] ahead_of_new = inside + column - row;
  wire [ITEM-1:0] new_item = i__payload[column * ITEM +: ITEM];
{FOLLOW}
  always @* if (started & ~rst & active & o__valid & ahead == 0) in_order: assert (o__payload[row * ITEM +: ITEM] == item);
"""
    return with_assumptions(device, body)


def distributor_harness(device: Device, lanes: int, beats: int) -> str:
    """Rows of the blocks that are a lane's turn leave at that lane, one by one, marked where a block ends."""
    bits = max(1, (lanes - 1).bit_length())
    outputs = [_array(f"o{role}", "o", lanes, role) for role in ("valid", "ready")]
    values = [f"o__{lane}__payload" for lane in range(lanes)]
    rows = select("row_out", [_row_item(device, port) for port in values], 3)
    offsets = ", ".join(f"i__payload[{ROW_BITS * row}]" for row in reversed(range(beats)))
    count, ends = device.field("i__payload", "count"), device.field("i__payload", "ends")
    body = f"""\
  localparam ITEM = 3, CAPACITY = {BLOCK_SIDE + beats}, SIZE = 5;
  (* anyconst *) wire [{bits - 1}:0] lane;
  (* anyconst *) wire [3:0] place;
  (* anyseq *) wire choose;
  always @* assume (lane < {lanes});
  always @* if (i__valid) assume ({count} >= 1 && {count} <= {beats} && ({ends} || {count} == {beats}));
{outputs[0]}{outputs[1]}
  wire enters = i__valid & i__ready;
  reg [{bits - 1}:0] turn;
  always @(posedge clk) if (rst) turn <= 0; else if (enters & {ends}) turn <= turn == {lanes - 1} ? 0 : turn + 1;
  wire here = enters & turn == lane;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = here ? {count} : 0, leaving = ovalid[lane] & oready[lane];
  wire chosen = here & choose & ~followed & place < {count};
  wire [SIZE-1:0] ahead_of_new = inside + place;
  wire [{beats - 1}:0] rows = {{{offsets}}};
  wire new_ends = {ends} & place + 1 == {count};
  wire [2:0] new_item = {{new_ends, {device.field("i__payload", "tag", "last")}, rows[place]}};
{rows}{FOLLOW}
  always @* if (started & ~rst & active & ovalid[lane] & ahead == 0) in_order: assert (row_out == item);
{invariants.distributor(device, lanes, beats) if device.probes else ""}"""
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", ROW_BITS)})


def gatherer_harness(device: Device, lanes: int, beats: int) -> str:
    """Rows of a lane leave in words, in turn block by block; a word is full or ends its block."""
    bits = max(1, (lanes - 1).bit_length())
    inputs = [_array(f"i{role}", "i", lanes, role) for role in ("valid", "ready")]
    ports = [f"i__{lane}__payload" for lane in range(lanes)]
    rows = select("row_in", [_row_item(device, port) for port in ports], 3)
    offsets = ", ".join(f"o__payload[{ROW_BITS * row}]" for row in reversed(range(beats)))
    count, ends = device.field("o__payload", "count"), device.field("o__payload", "ends")
    lengths = "".join(
        f"  reg [3:0] length{lane};\n"
        f"  always @(posedge clk) length{lane} <= rst ? 0 : ~(ivalid[{lane}] & iready[{lane}]) ? length{lane} :"
        f" {device.field(port, 'ends')} ? 0 : length{lane} + 1;\n"
        f"  always @* if (ivalid[{lane}] & length{lane} == {BLOCK_SIDE - 1}) assume ({device.field(port, 'ends')});\n"
        for lane, port in enumerate(ports)
    )
    body = f"""\
  localparam ITEM = 3, CAPACITY = {BLOCK_SIDE + beats}, SIZE = 5;
  (* anyconst *) wire [{bits - 1}:0] lane;
  (* anyseq *) wire choose;
  always @* assume (lane < {lanes});
{inputs[0]}{inputs[1]}{lengths}
  wire leaves = o__valid & o__ready;
  reg [{bits - 1}:0] turn;
  always @(posedge clk) if (rst) turn <= 0; else if (leaves & {ends}) turn <= turn == {lanes - 1} ? 0 : turn + 1;
  wire here = o__valid & turn == lane;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = ivalid[lane] & iready[lane], leaving = leaves & here ? {count} : 0;
  wire chosen = entering != 0 & choose & ~followed;
  wire [SIZE-1:0] ahead_of_new = inside;
{rows}
  wire [2:0] new_item = row_in;
{FOLLOW}
  wire [{beats - 1}:0] rows = {{{offsets}}};
  wire [2:0] row_out = {{{ends} & ahead + 1 == {count}, {device.field("o__payload", "tag", "last")}, rows[ahead]}};
  always @* if (started & ~rst & here) begin
    full: assert ({count} >= 1 && {count} <= {beats} && ({ends} || {count} == {beats}));
    if (active & ahead < {count}) in_order: assert (row_out[2] == item[2] && row_out[0] == item[0]);
    if (active & ahead < {count} & item[2]) tagged: assert (row_out[1] == item[1]);
  end
{invariants.gatherer(device, lanes, beats) if device.probes else ""}"""
    return with_assumptions(device, body, {port: one_bit_each(device, port, ROW_BITS) for port in ports})


def collector_harness(device: Device, lanes: int, slice_bytes: int, word_bytes: int) -> str:
    """Bytes of the slices of the lane whose turn it is leave without gaps; a job ends with its last byte and no other."""
    bits = max(1, (lanes - 1).bit_length())
    inputs = [_array(f"i{role}", "i", lanes, role) for role in ("valid", "ready")]
    ports = [f"i__{lane}__payload" for lane in range(lanes)]
    fields = {
        name: select(name, [device.field(port, *path) for port in ports], size, "turn")
        for name, path, size in (
            ("count", ("count",), slice_bytes.bit_length()),
            ("ends", ("ends",), 1),
            ("finishes", ("tag", "last"), 1),
        )
    }

    def data_bits(port: str, size: int) -> str:
        return f"{{{', '.join(f'{port}[{8 * place}]' for place in reversed(range(size)))}}}"

    counts = "".join(
        f"  always @* if (ivalid[{lane}]) assume ({device.field(port, 'count')} >= 1 &&"
        f" {device.field(port, 'count')} <= {slice_bytes} &&"
        f" ({data_bits(port, slice_bytes)} >> {device.field(port, 'count')}) == 0);\n"
        for lane, port in enumerate(ports)
    )
    out_count, out_last = device.field("o__payload", "count"), device.field("o__payload", "last")
    body = f"""\
  localparam ITEM = 2, CAPACITY = {2 * word_bytes + 2 * slice_bytes}, SIZE = {(4 * word_bytes).bit_length()};
  (* anyconst *) wire [5:0] place;
  (* anyseq *) wire choose;
{inputs[0]}{inputs[1]}{counts}
  reg [{bits - 1}:0] turn;
{"".join(fields.values())}{select("bytes_in", [data_bits(port, slice_bytes) for port in ports], slice_bytes, "turn")}
  wire enters = ivalid[turn] & iready[turn];
  always @(posedge clk) if (rst) turn <= 0; else if (enters & ends) turn <= turn == {lanes - 1} ? 0 : turn + 1;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = enters ? count : 0, leaving = o__valid & o__ready ? {out_count} : 0;
  wire chosen = enters & choose & ~followed & place < count;
  wire [SIZE-1:0] ahead_of_new = inside + place;
  wire [1:0] new_item = {{ends & finishes & place + 1 == count, bytes_in[place]}};
{FOLLOW}
  wire [{word_bytes - 1}:0] bytes_out = {data_bits("o__payload", word_bytes)};
  always @* if (started & ~rst) begin
    in_turn: assert ((ivalid & iready & ~(1 << turn)) == 0);
    if (o__valid) begin
      full: assert ({out_count} >= 1 && {out_count} <= {word_bytes} && ({out_last} || {out_count} == {word_bytes}));
      clean: assert ((bytes_out >> {out_count}) == 0);
      if (active & ahead < {out_count}) begin
        in_order: assert (bytes_out[ahead] == item[0]);
        job_ends: assert (item[1] == ({out_last} & ahead + 1 == {out_count}));
      end
    end
  end
{invariants.collector(device, lanes, slice_bytes, word_bytes) if device.probes else ""}"""
    return with_assumptions(device, body, {port: one_bit_each(device, port, 8, "data") for port in ports})


def width_harness(device: Device, i_bytes: int, o_bytes: int, partial: bool = False) -> str:
    """Bytes of words leave once, in order; words are full, a job's last word ends with its last byte.

    ``partial`` words enter with as many bytes as they have, else they count as full, but for the last one of a job.
    A word enters when it is offered: without a register a part of it may leave before it is accepted.
    """
    count, last = device.field("i__payload", "count"), device.field("i__payload", "last")
    out_count, out_last = device.field("o__payload", "count"), device.field("o__payload", "last")

    def data_bits(port: str, size: int) -> str:
        return f"{{{', '.join(f'{port}[{8 * place}]' for place in reversed(range(size)))}}}"

    amount = count if partial else f"({last} ? {count} : {i_bytes})"
    body = f"""\
  localparam ITEM = 2, CAPACITY = {max(i_bytes, o_bytes) + i_bytes}, SIZE = 6;
  (* anyconst *) wire [3:0] place;
  (* anyseq *) wire choose;
  wire [{i_bytes - 1}:0] bytes_in = {data_bits("i__payload", i_bytes)};
  wire [{o_bytes - 1}:0] bytes_out = {data_bits("o__payload", o_bytes)};
  always @* if (i__valid) assume ({count} >= 1 && {count} <= {i_bytes} && (bytes_in >> {count}) == 0);
  reg offered_before;
  always @(posedge clk) offered_before <= i__valid & ~i__ready & ~rst;
  wire enters = i__valid & ~offered_before & ~rst;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = ~enters ? 0 : {amount}, leaving = o__valid & o__ready ? {out_count} : 0;
  wire chosen = enters & choose & ~followed & place < entering;
  wire [SIZE-1:0] ahead_of_new = inside + place;
  wire [1:0] new_item = {{{last} & place + 1 == entering, bytes_in[place]}};
{FOLLOW}
  always @* if (started & ~rst & o__valid) begin
    full: assert ({out_count} >= 1 && {out_count} <= {o_bytes} && ({out_last} || {out_count} == {o_bytes}));
    clean: assert ((bytes_out >> {out_count}) == 0);
    if (active & ahead < {out_count}) begin
      in_order: assert (bytes_out[ahead] == item[0]);
      job_ends: assert (item[1] == ({out_last} & ahead + 1 == {out_count}));
    end
  end
"""
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", 8, "data")})


def alignment_harness(device: Device, beats: int, to_blocks: bool, width: int | None = None) -> str:
    """Row ``row`` of block ``block`` of any tile leaves at its place in the other order of the tile.

    With ``width``, all tiles have so many blocks, else any number.
    """
    count, ends = device.field("i__payload", "count"), device.field("i__payload", "ends")
    blocks = device.field("i__payload", "blocks")
    out_count = device.field("o__payload", "count")
    offsets = {
        port: ", ".join(f"{port}[{ROW_BITS * row}]" for row in reversed(range(beats))) for port in ("i__payload", "o__payload")
    }
    side = BLOCK_SIDE
    row_wise, block_wise = f"row * {blocks} + block", f"block * {side} + row"
    here, there = (row_wise, block_wise) if to_blocks else (block_wise, row_wise)
    block_ends = f"beat + {beats} == {side} * {blocks}" if to_blocks else f"(beat + {beats}) % {side} == 0"
    tile_ends = f"{ends}" if to_blocks else f"{ends} && (beat + {count} > {side} * ({blocks} - 1))"
    limit = f"assume ({blocks} == {width});" if width else ""
    body = f"""\
  localparam ITEM = 1, CAPACITY = {2 * side * TILE_BLOCKS + beats}, SIZE = 8;
  (* anyconst *) wire [2:0] row;
  (* anyconst *) wire [2:0] block;
  (* anyseq *) wire choose;
  wire enters = i__valid & i__ready;
  reg [6:0] beat;  // of the tile
  reg [2:0] width; // of the tile that enters
  always @(posedge clk) begin
    beat <= rst ? 0 : ~enters ? beat : {tile_ends} ? 0 : beat + {beats};
    if (enters) width <= {blocks};
  end
  always @* if (i__valid) begin
    assume ({blocks} >= 1 && {blocks} <= {TILE_BLOCKS});
    assume (beat == 0 || {blocks} == width);
    {limit}
    assume ({count} >= 1 && {count} <= {beats} && ({ends} || {count} == {beats}));
    if ({blocks} == 1) assume ({ends} || beat + {beats} < {side});
    else assume ({count} == {beats} && {ends} == ({block_ends}));
  end
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = enters ? {count} : 0, leaving = o__valid & o__ready ? {out_count} : 0;
  wire [9:0] here = {here};
  wire chosen = enters & choose & ~followed & block < {blocks} & here >= beat & here < beat + {count};
  wire [SIZE-1:0] ahead_of_new = inside - beat + {there};
  wire [{beats - 1}:0] rows_in = {{{offsets["i__payload"]}}}, rows_out = {{{offsets["o__payload"]}}};
  wire new_item = rows_in[here - beat];
{FOLLOW}
  always @* if (started & ~rst & o__valid) begin
    if (active & ahead < {out_count}) in_order: assert (rows_out[ahead] == item);
  end
"""
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", ROW_BITS)})


def one_bit_each(device: Device, port: str, size: int, name: str = "values") -> int:
    """Mask of a payload: of a field of data the first of every ``size`` bits, of the other fields everything."""
    entry = next(entry for entry in device.ports if entry["name"] == port)
    mask = (1 << int(entry["width"])) - 1
    found = next(part for part in entry["fields"] if part["name"] == name)
    width = found["width"] * found["count"]
    kept = sum(1 << place for place in range(0, width, size))
    return int(mask ^ ((((1 << width) - 1) ^ kept) << found["offset"]))


def _row_item(device: Device, port: str) -> str:
    """What is followed of a row: the end of its block, the last block of its job, one bit."""
    return f"{{{device.field(port, 'ends')}, {device.field(port, 'tag', 'last')}, {port}[0]}}"


def _array(name: str, stream: str, lanes: int, role: str) -> str:
    """A vector of one role of N streams."""
    signals = ", ".join(f"{stream}__{lane}__{role}" for lane in reversed(range(lanes)))
    return f"  wire [{lanes - 1}:0] {name} = {{{signals}}};\n"
