"""Helper invariants: what the registers of a block mean, so that its order can be shown by induction.

They say how many items the registers hold and at which place of them the followed item stands. Each is an assertion like any
other: it is proven with the property. They speak of probes (``inner_...``) and of the signals of :mod:`cdu_verif.formal.order`.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS

from cdu_verif.formal.device import Device

#: Bits of a row of values.
ROW_BITS = LANES * VALUE_BITS


def lane_probes(device: Device, port: str, lanes: int, beats: int) -> dict[str, int]:
    """What is seen of the ring of words in every lane of a distributor or a gatherer; ``port`` has the payload of a word."""
    words = BLOCK_SIDE // beats
    bits = (words - 1).bit_length()
    width = next(entry["width"] for entry in device.ports if entry["name"] == port)
    sizes = {"words": words * width, "held": words, "entering": bits, "leaving": bits, "row": (beats - 1).bit_length()}
    return {"turn": (lanes - 1).bit_length()} | {f"lane{n}.{name}": size for n in range(lanes) for name, size in sizes.items()}


def _ring(device: Device, port: str, lanes: int, beats: int) -> str:
    """The ring of words of the chosen lane: words ``entryJ`` from the oldest one on, sums ``sumJ`` of the rows before them."""
    words = BLOCK_SIDE // beats
    bits = (words - 1).bit_length()
    probes = lane_probes(device, port, lanes, beats)
    width = probes["lane0.words"] // words
    lines = [
        select(f"ring_{name}", [f"inner_lane{n}__{name}" for n in range(lanes)], probes[f"lane0.{name}"])
        for name in ("words", "held", "entering", "leaving", "row")
    ]
    for j in range(words):
        count = device.field(port, "count").replace(port, f"entry{j}")
        ends = device.field(port, "ends").replace(port, f"entry{j}")
        lines += [
            f"  wire [{bits - 1}:0] slot{j} = ring_leaving + {j};\n",
            f"  wire [{width - 1}:0] entry{j} = ring_words >> ({width} * slot{j});\n",
            f"  wire there{j} = ring_held[slot{j}];\n",
            f"  wire [4:0] sum{j + 1} = sum{j} + (there{j} ? {count} : 0);\n",
            f"  always @* if (started & there{j}) word{j}: assert ({count} >= 1 && {count} <= {beats}"
            f" && ({ends} || {count} == {beats}));\n",
        ]
    lines.insert(5, "  wire [4:0] sum0 = 0;\n")
    for j in range(words):
        after = (j + 1) % words
        meets = f"assert (ring_entering == slot{after})"
        lines.append(f"  always @* if (started & there{j} & ~there{after}) next{j}: {meets};\n")
    lines += [f"  always @* if (started & there{j}) joined{j}: assert (there{j - 1});\n" for j in range(1, words)]
    lines += [
        "  always @* if (started) begin\n",
        "    same_turn: assert (turn == inner_turn);\n",
        f"    if ({'&'.join(f'there{j}' for j in range(words))} | ~there0) meet: assert (ring_entering == ring_leaving);\n",
        "  end\n",
    ]
    return "".join(lines)


def distributor(device: Device, lanes: int, beats: int) -> str:
    """The lane holds the rows of its words but for those of the oldest one that have left."""
    words = BLOCK_SIDE // beats
    checks = ""
    for j in range(words):
        field = {
            name: device.field("i__payload", *path).replace("i__payload", f"entry{j}")
            for name, path in (("ends", ("ends",)), ("last", ("tag", "last")))
        }
        bits = ", ".join(f"entry{j}[{ROW_BITS * row}]" for row in reversed(range(beats)))
        checks += f"""\
  wire [{beats - 1}:0] bits{j} = {{{bits}}};
  always @* if (started & followed & at >= sum{j} & at < sum{j + 1})
    item{j}: assert (item_later == {{{field["ends"]} & at + 1 == sum{j + 1}, {field["last"]}, bits{j}[at - sum{j}]}});
"""
    return f"""\
{_ring(device, "i__payload", lanes, beats)}
  wire [4:0] at = ahead_later + ring_row;
  always @* if (started) begin
    rows_left: assert (there0 ? ring_row < sum1 : ring_row == 0);
    amount: assert (inside == sum{words} - ring_row);
    if (followed) present: assert (at < sum{words} && ahead_later < 16);
  end
{checks}"""


def gatherer(device: Device, lanes: int, beats: int) -> str:
    """The lane holds the rows of its words and those of a word that is not complete."""
    words = BLOCK_SIDE // beats
    checks = ""
    for j in range(words):
        field = {
            name: device.field("o__payload", *path).replace("o__payload", f"entry{j}")
            for name, path in (("ends", ("ends",)), ("last", ("tag", "last")))
        }
        bits = ", ".join(f"entry{j}[{ROW_BITS * row}]" for row in reversed(range(beats)))
        checks += f"""\
  wire [{beats - 1}:0] bits{j} = {{{bits}}};
  always @* if (started & followed & at >= sum{j} & at < sum{j + 1}) begin
    item{j}: assert (item_later[0] == bits{j}[at - sum{j}] && item_later[2] == ({field["ends"]} & at + 1 == sum{j + 1}));
    if (item_later[2]) tag{j}: assert (item_later[1] == {field["last"]});
  end
  always @* if (started & followed & at >= sum{words} & ring_entering == slot{j})
    begun{j}: assert (item_later[0] == bits{j}[at - sum{words}] && ~item_later[2]);
"""
    return f"""\
{_ring(device, "o__payload", lanes, beats)}
  wire [4:0] at = ahead_later;
  always @* if (started) begin
    if (ring_row != 0) begun: assert (~ring_held[ring_entering]);
    amount: assert (inside == sum{words} + ring_row);
    if (followed) present: assert (at < sum{words} + ring_row && ahead_later < 16);
  end
{checks}"""


def collector_probes(lanes: int, slice_bytes: int, word_bytes: int) -> dict[str, int]:
    """What is seen of a collector."""
    ring, bits = _ring_bytes(slice_bytes), (word_bytes - 1).bit_length()
    probes = {"level": bits, "place": bits, "end": bits + 1, "valid": 1, "last": 1, "flush": 1, "ring": 8 * ring}
    return (
        probes
        | {"spilled": 8 * (slice_bytes - 1), "spilled_count": bits}
        | ({"turn": (lanes - 1).bit_length()} if lanes > 1 else {})
    )


def collector(device: Device, lanes: int, slice_bytes: int, word_bytes: int) -> str:
    """Behind the word at the output come bytes of the next one, behind these the slice in the ring."""
    ring = _ring_bytes(slice_bytes)
    ring_bits = (ring - 1).bit_length()

    def bits_of(name: str, size: int) -> str:
        return f"{{{', '.join(f'{name}[{8 * place}]' for place in reversed(range(size)))}}}"

    zeros = ""
    for place in range(ring):
        distance = f"(({ring_bits}'d{place} - inner_place) & {ring - 1})"
        zeros += f"    ring{place}: assert (~inner_valid | ~ring_bits[{place}] | {distance} < amount);\n"
    return f"""\
  wire [{word_bytes.bit_length() - 1}:0] out_count = {device.field("o__payload", "count")};
  wire out_last = {device.field("o__payload", "last")};
  wire [{ring - 1}:0] ring_bits = {bits_of("inner_ring", ring)};
  wire [{ring - 1}:0] spilled_bits = {bits_of("inner_spilled", slice_bytes - 1)};
  wire [SIZE-1:0] shown = o__valid ? out_count : 0;
  wire [SIZE-1:0] base = inner_valid ? inner_place : inner_level;
  wire [SIZE-1:0] middle = inner_flush ? inner_spilled_count : base;
  wire [SIZE-1:0] amount = inner_end - inner_place;
  wire [{word_bytes - 1}:0] next_bits = o__valid ? spilled_bits : bytes_out;
  wire [SIZE-1:0] in_next = ahead_later - shown, in_slice = in_next - middle;
  always @* if (started) begin
    same_turn: assert ({"turn == inner_turn" if lanes > 1 else "turn == 0"});
    total: assert (inside == shown + middle + (inner_valid ? amount : 0));
    if (o__valid) word: assert (out_count >= 1 && out_count <= {word_bytes} && (out_last || out_count == {word_bytes}));
    if (inner_flush) flushes: assert (o__valid && ~out_last && base == 0 && middle >= 1 && middle < {ring});
    if (o__valid & out_last) job_over: assert (base == 0);
    if (inner_valid) slice: assert (amount >= 1 && amount <= {slice_bytes} && inner_place < {word_bytes}
      && inner_level == (inner_last ? 0 : inner_end % {word_bytes}));
    no_more: assert ((bytes_out >> (o__valid ? out_count : base)) == 0);
    if (o__valid) no_more_next: assert ((spilled_bits >> middle) == 0);
    if (followed) begin
      if (ahead_later < shown) in_word:
        assert (item_later == {{out_last & ahead_later + 1 == out_count, bytes_out[ahead_later]}});
      else if (in_next < middle) in_next_word:
        assert (item_later == {{inner_flush & in_next + 1 == middle, next_bits[in_next]}});
      else in_ring: assert (inner_valid && in_slice < amount
        && item_later == {{inner_last & in_slice + 1 == amount, ring_bits[(inner_place + in_slice) & {ring - 1}]}});
    end
{zeros}  end
"""


def _ring_bytes(slice_bytes: int) -> int:
    return 1 << (slice_bytes - 1).bit_length()


def select(name: str, choices: list[str], width: int, index: str = "lane") -> str:
    """Verilog: a wire with one of several expressions."""
    value = choices[-1]
    for number in reversed(range(len(choices) - 1)):
        value = f"{index} == {number} ? {choices[number]} : {value}"
    return f"  wire [{width - 1}:0] {name} = {value};\n"
