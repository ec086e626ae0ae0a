"""The CRC-32 that a payload may carry behind its last byte: that of zlib (ISO/IEC 3309), least significant byte first.

A driver that computes it has ``zlib.crc32``; the numbers here are for what computes it bit by bit.
"""

from __future__ import annotations

from cdu_spec.bitstream import CRC_BYTES

CRC_BITS = 8 * CRC_BYTES
#: The polynomial without its leading term, the coefficient of x^31 at bit 0.
POLYNOMIAL = 0xEDB88320
#: The register in front of the first byte; the CRC is its complement behind the last one.
INITIAL = (1 << CRC_BITS) - 1


def after_zeros(register: int, bits: int) -> int:
    """The register that so many zeros lead to."""
    for _ in range(bits):
        register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)
    return register


#: The register behind any bytes and their CRC, which is the complement of the register: what remains are 32 ones.
RESIDUE = after_zeros(INITIAL, CRC_BITS)
