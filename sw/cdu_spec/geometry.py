"""Sizes of the data path that are fixed by the method and not by a configuration (JPEG-ACT, section "CDU")."""

#: Values accepted per cycle by one CDU; also the side of a DCT block.
LANES = 8
#: Rows (and columns) of a DCT block.
BLOCK_SIDE = 8
#: Values in a block, and bits in its ZVC mask.
BLOCK_VALUES = BLOCK_SIDE * BLOCK_SIDE
#: Columns of the alignment buffer (one 128-byte cache line of float32 per row).
TILE_COLUMNS = 32
#: Blocks side by side in the alignment buffer.
TILE_BLOCKS = TILE_COLUMNS // BLOCK_SIDE
#: Bits of a quantised value (the m of SFPR).
VALUE_BITS = 8
#: Bits of a DCT coefficient of 8-bit values, sign included; the inverse DCT accepts exactly this range.
COEFFICIENT_BITS = 12
#: Bits of one entry of the shift table.
SHIFT_BITS = 3
