"""What stands at the ports of a unit: words with a count of bytes, packets that an abort cuts, scales from two sources."""

from __future__ import annotations

from cdu_spec.registers import ScaleSource

from cdu_verif.formal.device import Device
from cdu_verif.formal.order import FOLLOW
from cdu_verif.formal.stream_rules import with_assumptions


def sender_harness(device: Device) -> str:
    """An end of a job is that of a packet of which a word was accepted since the last cut; what a cut leaves is shown.

    ``due``: the last word of a packet that was accepted since the last cut is at the port. ``owed``: the sink has still to get
    the TLAST of a packet with words from before the last cut.
    """
    last = device.field("i__payload", "last")
    body = f"""\
  wire accepts = i__valid & i__ready, leaves = tvalid & tready;
  reg due, owed, open_at_port;
  always @(posedge clk) begin
    due <= ~rst & ~cut & (accepts ? {last} : due & ~leaves);
    open_at_port <= ~rst & (leaves ? ~tlast : open_at_port);
    owed <= ~rst & (cut ? (leaves ? ~tlast : tvalid | open_at_port) : owed & ~(leaves & tlast));
  end
  always @* if (started & ~rst) begin
    ends_once: assert (ended == (due & leaves & ~cut));
    at_the_port: assert (~due | (tvalid & tlast));
    shown: assert (draining == owed);
  end
"""
    return with_assumptions(device, body)


def receiver_harness(device: Device, size: int) -> str:
    """Bytes leave once, in order; no word is empty, but for that of a packet without bytes; a packet ends with its last byte.

    As many packets leave as come, those without bytes included: more than two cannot be inside.
    The end of a byte's packet may come after it, in a transfer without bytes: ``pending`` until then.
    """
    count, last = device.field("o__payload", "count"), device.field("o__payload", "last")
    bytes_in, bytes_out = (
        f"{{{', '.join(f'{port}[{8 * place}]' for place in reversed(range(size)))}}}" for port in ("tdata", "o__payload")
    )
    body = f"""\
  localparam ITEM = 1, CAPACITY = {2 * size}, SIZE = 6;
  always @* assume (~clear & ~flush & ((tkeep & (tkeep + 1)) == 0));
  (* anyconst *) wire [{(size - 1).bit_length() - 1}:0] place;
  (* anyseq *) wire choose;
  wire [{size - 1}:0] bytes_in = {bytes_in};
  wire [{size - 1}:0] bytes_out = {bytes_out};
  wire [{size}:0] above = tkeep + 1;
  wire taken = tvalid & tready, arrives = taken & tkeep[0], closes = taken & ~tkeep[0] & tlast;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = {" : ".join(f"~taken | ~tkeep[{n}] ? {n}" for n in range(size))} : {size};
  wire [SIZE-1:0] leaving = o__valid & o__ready ? {count} : 0;
  wire chosen = taken & choose & ~followed & place < entering;
  wire [SIZE-1:0] ahead_of_new = inside + place;
  wire new_item = bytes_in[place];
{FOLLOW}
  reg pending, byte_ends, ended_before = 1;
  always @(posedge clk) begin
    if (chosen) begin
      pending <= place + 1 == entering & ~tlast;
      byte_ends <= place + 1 == entering & tlast;
    end else if (pending & (arrives | closes)) begin
      pending <= 0;
      byte_ends <= closes;
    end
    ended_before <= rst | (o__valid & o__ready ? {last} : ended_before);
  end
  reg [3:0] packets;
  wire leaves_last = o__valid & o__ready & {last};
  always @(posedge clk) packets <= rst ? 0 : packets + (taken & tlast) - leaves_last;
  always @* if (started & ~rst) begin
    no_packet_lost: assert (packets <= 2);
    no_packet_made: assert (~leaves_last | packets != 0);
  end
  always @* if (started & ~rst & o__valid) begin
    empty: assert ({count} != 0 || ({last} && ended_before));
    clean: assert ((bytes_out >> {count}) == 0);
    if (followed & ahead_later < {count}) begin
      in_order: assert (bytes_out[ahead_later] == item_later);
      packet_ends: assert (~pending && byte_ends == ({last} & ahead_later + 1 == {count}));
    end
  end
"""
    return with_assumptions(device, body, {"tdata": sum(1 << 8 * place for place in range(size))})


def scale_join_harness(device: Device) -> str:
    """The n-th packet of scales comes from the source that the n-th job names, and is whole."""
    source, last = device.field("job__payload", "source"), device.field("o__payload", "last")
    body = f"""\
  localparam ITEM = 2, CAPACITY = 9, SIZE = 5;
  (* anyseq *) wire choose;
  always @* assume ({source} <= {max(ScaleSource)});
  wire transfer = o__valid & o__ready;
  wire from_registers = written__valid & written__ready, from_port = streamed__valid & streamed__ready;
  reg [SIZE-1:0] inside;
  wire [SIZE-1:0] entering = job__valid & job__ready, leaving = transfer & {last};
  wire chosen = entering != 0 & choose & ~followed;
  wire [SIZE-1:0] ahead_of_new = inside;
  wire [ITEM-1:0] new_item = {source};
{FOLLOW}
  reg within, before;
  always @(posedge clk) begin
    within <= ~rst & (transfer ? ~{last} : within);
    if (transfer) before <= from_registers;
  end
  always @* if (started & ~rst) begin
    one_source: assert (transfer == (from_registers | from_port) && ~(from_registers & from_port));
    whole: assert (~(transfer & within) || from_registers == before);
    if (followed & ahead_later == 0 & transfer & item_later == {int(ScaleSource.REGISTERS)}) registers: assert (from_registers);
    if (followed & ahead_later == 0 & transfer & item_later == {int(ScaleSource.PORT)}) port: assert (from_port);
  end
"""
    return with_assumptions(
        device, body, {name: _last_only(device, name) for name in ("written__payload", "streamed__payload")}
    )


def _last_only(device: Device, port: str) -> int:
    """Mask of the flag that ends a packet of scales."""
    fields = next(entry["fields"] for entry in device.ports if entry["name"] == port)
    return 1 << next(int(part["offset"]) for part in fields if part["name"] == "last")
