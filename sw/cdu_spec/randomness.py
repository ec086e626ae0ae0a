"""Random numbers of the stochastic rounding: a function of seed and position, the same in golden model and hardware.

The 64 bits of (counter, seed) pass through rounds of the substitution and the row rotations of the block cipher RECTANGLE
(Zhang et al., Science China Information Sciences 2015), which are cheap in gates and in bit-sliced software alike. The
counter is the number of a beat in the payload's order, so nothing depends on how many CDUs work or when. With fewer than 8
rounds numbers whose counters differ in one bit are correlated (0.15 with 7, 0.48 with 6).
"""

#: 16-bit words of the state: counter low, counter high, seed low, seed high.
STATE_WORDS = 4
#: Bits of a word.
WORD_BITS = 16
#: The 4-bit substitution of a column, whose bit i is that of word i.
SBOX = (6, 5, 12, 10, 1, 14, 7, 9, 11, 0, 3, 13, 8, 15, 4, 2)
#: Left rotation of each word after the substitution.
ROTATIONS = (0, 1, 12, 13)
#: Exclusive-or with word 0 at the begin of each round.
ROUND_CONSTANTS = (0x01, 0x02, 0x04, 0x09, 0x12, 0x05, 0x0B, 0x16)
#: Values 0 to 3 of a beat take the words themselves; value 4 + i takes word i rotated left by so much, xor word (i + 1) mod 4.
SECOND_ROTATION = 5
