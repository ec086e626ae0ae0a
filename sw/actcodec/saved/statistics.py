"""Statistics of compression in a training step: bytes, ratio and error, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from actcodec.saved.forms import BITS
from actcodec.saved.peak_memory import PeakMemory
from actcodec.saved.shape_only import SHAPE

#: Kinds of saved tensors that are no activations; :func:`integers_of` makes one kind of integers for each operation.
WEIGHTS = "weights and buffers"
STATISTICS = "statistics and copies within operations"
SMALL = "tensors of rank 0 and 1"
MASKS = "boolean masks"
POOL_INDICES = "indices of max pools"
COMPLEX = "complex numbers"
#: Least share of all bytes, and least number of bytes, that are uncompressed without a reason in the policy before a warning.
MUCH, MUCH_BYTES = 0.1, 1 << 14
#: Reasons with a smaller share are not named.
_LEAST_SHARE, _MOST_REASONS = 0.03, 3
_NOTHING = (
    "nothing was saved for a backward pass while the context was open: torch's hooks see the thread that opened it and no other"
)


@dataclass
class _Bytes:
    original: int = 0
    kept: int = 0


@dataclass
class TensorRecord:
    """One distinct activation that autograd saved."""

    name: str  #: module in whose forward it was first saved
    op: str  #: operation that produced the tensor
    shape: tuple[int, ...]
    dtype: str
    #: A codec's name, ``exact``, ``loss`` (exact because it belongs to one), ``bits`` (a mask, or in which region each value
    #: lies), or ``shape`` (no value is needed)
    codec: str
    bytes_original: int
    bytes_compressed: int
    relative_error: float | None = None  #: ||x - x'|| / ||x||, when it was measured
    saved_by: tuple[str, ...] = ()  #: operations that saved it
    choice: int | None = None  #: index of its codec among all codecs chosen in the context, from 0; None if it has none
    #: Reason why it is kept exactly though the policy would compress a tensor like it; empty if it is compressed, or left out
    #: by the policy or the limits of the context
    uncoded: str = ""

    @property
    def bytes_in_float32(self) -> int:
        """Bytes that the values would take in float32."""
        itemsize = getattr(torch, self.dtype).itemsize
        return self.bytes_original // int(itemsize) * torch.float32.itemsize

    def add_user(self, operation: str) -> None:
        """Add an operation that saves the tensor."""
        if operation not in self.saved_by:
            self.saved_by += (operation,)


class Statistics:
    """Account of all activations saved while the context was open.

    An activation is a floating-point tensor of rank 2 or more that autograd saved and that is no parameter, buffer or
    statistic; a float dropout mask is one. A tensor that several operations save counts once. Values repeated by expansion
    count once, and so does memory that is saved in several shapes. All other saved tensors (integers, masks, statistics,
    weights) are in :attr:`not_counted`.
    """

    def __init__(self, records: Iterable[TensorRecord] = (), peak: PeakMemory | None = None) -> None:
        self.records = list(records)
        self._uncounted: dict[str, _Bytes] = {}
        self._peak = peak

    def add_uncounted(self, what: str, original: int, kept: int) -> None:
        """Add the bytes of a distinct tensor that is no activation, before and after packing; negative numbers remove them."""
        counted = self._uncounted.get(what)
        if counted is None:
            counted = self._uncounted[what] = _Bytes()
        counted.original += original
        counted.kept += kept

    @property
    def not_counted(self) -> dict[str, int]:
        """Bytes kept of saved tensors that are no activations, by kind, the largest first.

        Weights and buffers that operations saved exist without autograd as well, except for copies (those of autocast, for
        example).
        """
        kinds = sorted(self._uncounted.items(), key=lambda kind: -kind[1].kept)
        return {what: bytes_of.kept for what, bytes_of in kinds if bytes_of.kept}

    @property
    def bytes_of_everything(self) -> tuple[int, int]:
        """Original and kept bytes of activations and of tensors not counted, except weights and buffers."""
        others = [bytes_of for what, bytes_of in self._uncounted.items() if what != WEIGHTS]
        original = self.bytes_original + sum(one.original for one in others)
        return original, self.bytes_compressed + sum(one.kept for one in others)

    @property
    def ratio_of_everything(self) -> float:
        """As :attr:`ratio`, for :attr:`bytes_of_everything`; 1.0 if nothing was saved."""
        original, kept = self.bytes_of_everything
        return original / kept if kept else 1.0

    @property
    def uncoded(self) -> dict[str, int]:
        """Bytes that stayed uncompressed though no rule asked for exact values, by reason, the largest first.

        They belong to kinds of tensors that no codec takes (without weights and buffers), and to activations with
        :attr:`TensorRecord.uncoded`.
        """
        found = {what: one.kept for what, one in self._uncounted.items() if what != WEIGHTS and one.kept >= one.original > 0}
        for record in self.records:
            if record.uncoded:
                found[record.uncoded] = found.get(record.uncoded, 0) + record.bytes_compressed
        return dict(sorted(found.items(), key=lambda reason: -reason[1]))

    @property
    def uncoded_share(self) -> float:
        """Uncoded part of :attr:`bytes_of_everything` before compression, 0 to 1."""
        original, _ = self.bytes_of_everything
        return sum(self.uncoded.values()) / original if original else 0.0

    @property
    def much_uncoded(self) -> str:
        """One sentence with the share of uncoded bytes and its reasons, empty if the share is below a tenth or the bytes are
        few.
        """
        reasons, (original, _) = self.uncoded, self.bytes_of_everything
        if self.uncoded_share <= MUCH or sum(reasons.values()) < MUCH_BYTES:
            return ""
        shares = [f"{what} {count / original:.0%}" for what, count in reasons.items() if count >= _LEAST_SHARE * original]
        named = ", ".join(shares[:_MOST_REASONS])
        return (
            f"{self.uncoded_share:.0%} of the bytes that autograd keeps are not compressed: {named}; "
            f"the ratio of everything is {self.ratio_of_everything:.2f}"
        )

    @property
    def index_bytes_original(self) -> int:
        """Original bytes of the indices of max pools, int64."""
        return self._uncounted.get(POOL_INDICES, _Bytes()).original

    @property
    def index_bytes_compressed(self) -> int:
        """Bytes kept of the indices of max pools."""
        return self._uncounted.get(POOL_INDICES, _Bytes()).kept

    @property
    def bytes_original(self) -> int:
        """Bytes of the distinct activations as autograd would have kept them."""
        return sum(record.bytes_original for record in self.records)

    @property
    def bytes_compressed(self) -> int:
        """Bytes kept for these activations, headers and scales included."""
        return sum(record.bytes_compressed for record in self.records)

    @property
    def ratio(self) -> float:
        """``bytes_original / bytes_compressed``; 1.0 when nothing was saved."""
        kept = self.bytes_compressed
        return self.bytes_original / kept if kept else 1.0

    @property
    def ratio_of_float32(self) -> float:
        """As :attr:`ratio`, relative to the same activations in float32; 1.0 if nothing was saved."""
        kept = self.bytes_compressed
        return sum(record.bytes_in_float32 for record in self.records) / kept if kept else 1.0

    @property
    def peak_bytes(self) -> int | None:
        """The peak of memory in use since the context was entered, in bytes above its level at that time.

        Read it after the backward pass. It counts memory of the model's CUDA device, or of the process
        (:class:`~actcodec.saved.peak_memory.PeakMemory`). None unless the context was opened with ``measure_peak``.
        """
        return None if self._peak is None else self._peak.bytes

    @property
    def tensors(self) -> list[dict[str, Any]]:
        """One row per layer in the order of the forward pass; tensors of several steps are summed.

        Keys: name, op, shape, dtype, codec, count, bytes_original, bytes_compressed, ratio (None if no bytes are kept, because
        backward computes the tensor from others), relative_error (the mean; None if it was not measured).
        """
        groups: dict[tuple[Any, ...], list[TensorRecord]] = {}
        for record in self.records:
            key = (record.name, record.op, record.shape, record.dtype, record.codec)
            groups.setdefault(key, []).append(record)
        return [_row(records) for records in groups.values()]

    @property
    def headline(self) -> str:
        """One line with the bytes and the ratio of everything."""
        original, kept = self.bytes_of_everything
        if not original:
            return _NOTHING
        return (
            f"everything that autograd keeps but {WEIGHTS}: {original} bytes in {kept}, ratio of everything "
            f"{self.ratio_of_everything:.2f}"
        )

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def table(self) -> str:
        """Return a text table: the headline, the rows of :attr:`tensors`, their sum, and bytes not counted or not
        compressed.
        """
        heading = ("module", "operation", "shape", "codec", "bytes", "kept", "ratio", "error")
        rows = [heading]
        for row in self.tensors:
            error = row["relative_error"]
            rows.append(
                (
                    row["name"] or "-",
                    row["op"],
                    "x".join(map(str, row["shape"])),
                    row["codec"],
                    str(row["bytes_original"]),
                    str(row["bytes_compressed"]),
                    ratio_text(row["ratio"]),
                    "-" if error is None else f"{error:.4f}",
                )
            )
        rows.append(("activations", "", "", "", str(self.bytes_original), str(self.bytes_compressed), f"{self.ratio:.2f}", ""))
        lines = [self.headline, text_table(rows, left=4)]
        if self.not_counted:
            lines.append("not counted, in bytes: " + ", ".join(f"{what} {count}" for what, count in self.not_counted.items()))
        if self.much_uncoded:
            lines.append(self.much_uncoded)
        if self.ratio_of_float32 != self.ratio:
            lines.append(f"against float32 the ratio of activations is {self.ratio_of_float32:.2f}")
        if self.peak_bytes is not None:
            lines.append(f"peak memory since the context was entered, in bytes: {self.peak_bytes}")
        return "\n".join(lines)


def ratio_text(ratio: float | None) -> str:
    """Format a ratio for a table; ``-`` for None, if no bytes are kept."""
    return "-" if ratio is None else f"{ratio:.2f}"


def integers_of(operation: str) -> str:
    """Return the kind of integers (indices or a workspace) that an operation saved."""
    return f"integers of {operation}"


def text_table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Lay out rows of equal length in columns, the first ``left`` columns aligned left (texts), the others right (numbers)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column < left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _row(records: list[TensorRecord]) -> dict[str, Any]:
    first = records[0]
    original = sum(record.bytes_original for record in records)
    kept = sum(record.bytes_compressed for record in records)
    errors = [record.relative_error for record in records if record.relative_error is not None]
    return {
        "name": first.name,
        "op": first.op,
        "shape": list(first.shape),
        "dtype": first.dtype,
        "codec": first.codec,
        "count": len(records),
        "bytes_original": original,
        "bytes_compressed": kept,
        "ratio": original / kept if kept else None,
        "relative_error": sum(errors) / len(errors) if errors else None,
    }


def relative_error(x: Tensor, y: Tensor, codec: str) -> float:
    """Return ||x - y|| / ||x|| in double; for ``brc`` that of the signs, and 0 for bits and shapes, which are exact."""
    if codec in (SHAPE, BITS):
        return 0.0
    exact, got = x.detach().double(), y.double()
    if codec == "brc":
        exact = (exact > 0).double()
    if bool(((exact == got) | (exact.isnan() & got.isnan())).all()):
        return 0.0  # also where values are infinite
    norm = float(torch.linalg.vector_norm(exact))
    error = float(torch.linalg.vector_norm(exact - got))
    return error / norm if norm else error
