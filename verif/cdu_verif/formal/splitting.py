"""The splitter: what it hands out is the payload of every job, cut where its blocks end."""

from __future__ import annotations

from cdu_spec.bitstream import MASK_BYTES, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES

from cdu_verif.formal.device import Device
from cdu_verif.formal.invariants import select
from cdu_verif.formal.stream_rules import with_assumptions

_JOB_BITS = 4  # of the number of a job, counted from reset
_MOST_BEATS = 31
_PLACE_BITS = 9  # of the number of a byte in its job


def splitter_harness(config: CduConfig, device: Device, free_of_byte: int) -> str:
    """Byte ``place`` of the payload of job ``number``, both chosen freely, is that byte of the job's slices.

    Where a payload ends early zeros take the place of what is missing; where it is too long the rest leaves nowhere. A block is
    as long as its own mask, mode and rows say, a job as long as its beats say, and the lanes take turns block by block. The
    counts of a job start again with the next one, so that no fault in one job can hide behind another. The bits of every byte
    that ``free_of_byte`` masks are free, the others are 0; bytes are followed by their first bit. Jobs have up to
    :data:`_MOST_BEATS` beats.
    """
    lanes, size, word_bytes = config.cdus, config.slice_bytes, config.packed_bytes
    bits = max(1, (lanes - 1).bit_length())

    def first_bits(port: str, count: int) -> str:
        return f"{{{', '.join(f'{port}[{8 * place}]' for place in reversed(range(count)))}}}"

    ports = [f"o__{lane}__payload" for lane in range(lanes)]
    valid = ", ".join(f"o__{lane}__valid" for lane in reversed(range(lanes)))
    ready = ", ".join(f"o__{lane}__ready" for lane in reversed(range(lanes)))
    width = next(port["width"] for port in device.ports if port["name"] == ports[0])
    count, last = device.field("i__payload", "count"), device.field("i__payload", "last")

    def field(*path: str) -> str:
        return device.field(ports[0], *path).replace(ports[0], "slice")

    def job(name: str) -> str:
        return device.field("job__payload", name)

    population = " + ".join(f"slice[{bit}]" for bit in range(BLOCK_VALUES))
    zvc = " || ".join(f"{field('tag', 'mode')} == {int(mode)}" for mode in config.built_modes if mode.has_zvc) or "1'b0"
    modes = " || ".join(f"{job('mode')} == {int(mode)}" for mode in config.built_modes if mode is not Mode.BYPASS)
    zvc_job = " || ".join(f"{job('mode')} == {int(mode)}" for mode in config.built_modes if mode.has_zvc) or "1'b0"
    body = f"""\
  (* anyconst *) wire [{_JOB_BITS - 1}:0] number;
  (* anyconst *) wire [{_PLACE_BITS - 1}:0] place;
  wire [{word_bytes - 1}:0] bytes_in = {first_bits("i__payload", word_bytes)};
  always @* if (i__valid) assume ({count} <= {word_bytes} && (bytes_in >> {count}) == 0);
  always @* if (job__valid) assume (({modes}) && {job("beats")} != 0 && (!({zvc_job}) || {job("beats")} % {BLOCK_SIDE} == 0));

  // The payload that comes: words up to one with last are a job's
  wire enters = i__valid & i__ready;
  reg [{_JOB_BITS - 1}:0] job_in;
  reg [{_PLACE_BITS - 1}:0] place_in;
  reg came, over, value;  // the byte has come; its job has ended; its bit
  wire chosen = enters & job_in == number & place >= place_in & place < place_in + {count};
  always @(posedge clk) begin
    job_in <= rst ? 0 : job_in + (enters & {last});
    place_in <= rst | (enters & {last}) ? 0 : place_in + (enters ? {count} : 0);
    came <= ~rst & (came | chosen);
    over <= ~rst & (over | (enters & {last} & job_in == number));
    if (chosen) value <= bytes_in[place - place_in];
  end

  // The jobs
  wire begins = job__valid & job__ready;
  reg [{_JOB_BITS - 1}:0] job_begun;
  reg [31:0] beats;
  reg [2:0] mode;
  reg bank;
  always @(posedge clk) begin
    job_begun <= rst ? 0 : job_begun + begins;
    if (begins & job_begun == number) begin
      beats <= {job("beats")};
      mode <= {job("mode")};
      bank <= {job("bank")};
    end
  end

  // The slices that leave
  reg [{bits - 1}:0] turn;
  wire [{lanes - 1}:0] ovalid = {{{valid}}};
  wire [{lanes - 1}:0] oready = {{{ready}}};
{select("slice", ports, width, "turn")}
  wire offered = ovalid[turn];
  wire leaves = offered & oready[turn];
  wire block_ends = {field("ends")}, job_ends = block_ends & {field("tag", "last")};
  reg [{_JOB_BITS - 1}:0] job_out;
  reg [{_PLACE_BITS - 1}:0] place_out;
  reg [31:0] beats_out;  // of the blocks of this job that have left
  reg [7:0] in_block, length_before;
  wire [7:0] mask_length = {MASK_BYTES} + {population};
  wire [7:0] row_bytes = {field("tag", "mode")} == {int(Mode.BRC)} ? 1 : {LANES};
  wire [7:0] first_length = {zvc} ? mask_length : {field("rows")} * row_bytes;
  wire [7:0] length = in_block == 0 ? first_length : length_before;
  wire [7:0] rest = length - in_block;
  always @(posedge clk) begin
    turn <= rst ? 0 : ~(leaves & block_ends) ? turn : turn == {lanes - 1} ? 0 : turn + 1;
    job_out <= rst ? 0 : job_out + (leaves & job_ends);
    place_out <= rst | (leaves & job_ends) ? 0 : place_out + (leaves ? {field("count")} : 0);
    beats_out <= rst | (leaves & job_ends) ? 0 : beats_out + (leaves & block_ends ? {field("rows")} : 0);
    in_block <= rst | (leaves & block_ends) ? 0 : in_block + (leaves ? {field("count")} : 0);
    if (leaves) length_before <= length;
  end
  wire [{size - 1}:0] bytes_out = {first_bits("slice", size)};
  always @* if (started & ~rst) begin
    in_turn: assert ((ovalid & ~(1 << turn)) == 0);
    if (offered) begin
      cut: assert (rest != 0 && {field("count")} == (rest < {size} ? rest : {size}) && block_ends == (rest <= {size}));
      clean: assert ((bytes_out >> {field("count")}) == 0);
      if (job_out == number) begin
        begun: assert (job_begun > number);
        tagged: assert ({field("tag", "mode")} == mode && {field("tag", "bank")} == bank);
        rows: assert ({field("rows")} == (beats - beats_out > {BLOCK_SIDE} ? {BLOCK_SIDE} : beats - beats_out));
        last: assert ({field("tag", "last")} == (beats - beats_out <= {BLOCK_SIDE}));
        if (place >= place_out && place < place_out + {field("count")}) begin
          in_order: assert (bytes_out[place - place_out] == (came & value));
          not_early: assert (came | over);
        end
      end
    end
  end
"""
    free = {"i__payload": free_bits(device, "i__payload", free_of_byte), "job__payload": _small_jobs(device)}
    return with_assumptions(device, body, free)


def free_bits(device: Device, port: str, free_of_byte: int) -> int:
    """Mask of a payload: of every byte of ``data`` the bits of a mask, of the other fields everything."""
    entry = next(entry for entry in device.ports if entry["name"] == port)
    found = next(part for part in entry["fields"] if part["name"] == "data")
    kept = sum(free_of_byte << place for place in range(0, found["width"], 8))
    return int(((1 << int(entry["width"])) - 1) ^ ((((1 << found["width"]) - 1) ^ kept) << found["offset"]))


def _small_jobs(device: Device) -> int:
    """Mask of the bits of a job that the splitter looks at, of its beats only the lowest ones."""
    entry = next(entry for entry in device.ports if entry["name"] == "job__payload")
    fields = {field["name"]: field for field in entry["fields"]}
    free = {"mode": (1 << fields["mode"]["width"]) - 1, "bank": 1, "beats": _MOST_BEATS}
    return sum(mask << fields[name]["offset"] for name, mask in free.items())
