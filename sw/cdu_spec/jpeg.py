"""Numbers of baseline JPEG (ITU-T T.81) for 8-bit samples: zig-zag order, ranges, sizes, symbols."""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES


def _diagonal_place(index: int) -> tuple[int, int]:
    """Return the diagonal of a row-major index, and the position along it: up on even diagonals, down on odd ones."""
    vertical, horizontal = divmod(index, BLOCK_SIDE)
    diagonal = vertical + horizontal
    return diagonal, vertical if diagonal % 2 else horizontal


#: Row-major index ``8 * v + u`` of the coefficient at each position of the zig-zag order (figure A.6).
ZIGZAG = tuple(sorted(range(BLOCK_VALUES), key=_diagonal_place))
#: Categories of a DC difference, and sizes of an AC coefficient (F.1.2.1.2 and F.1.2.2.1).
MAX_DC_SIZE, MAX_AC_SIZE = 11, 10
#: Range of a quantised coefficient: a DC coefficient, so that differences have 11 bits; ten bits of an AC one.
DC_MIN, DC_MAX = -1024, 1023
AC_LIMIT = (1 << MAX_AC_SIZE) - 1
#: AC symbols without a coefficient: the rest of the block is zero; ZRL_RUN zeros.
EOB, ZRL = 0x00, 0xF0
ZRL_RUN = 16
#: Byte that begins a marker; in the entropy-coded segment a zero byte follows it.
MARKER = 0xFF
