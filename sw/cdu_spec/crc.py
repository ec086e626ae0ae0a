"""The CRC-32 that may follow a payload: that of zlib (ISO/IEC 3309), least significant byte first.

A driver computes it with ``zlib.crc32``; the numbers here serve bit-serial implementations.
"""

from __future__ import annotations

from cdu_spec.bitstream import CRC_BYTES

CRC_BITS = 8 * CRC_BYTES
#: The polynomial without its leading term, the coefficient of x^31 at bit 0.
POLYNOMIAL = 0xEDB88320
#: The register before the first byte; the CRC is its complement after the last one.
INITIAL = (1 << CRC_BITS) - 1


def after_zeros(register: int, bits: int) -> int:
    """Return the register after ``bits`` zeros."""
    for _ in range(bits):
        register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)
    return register


#: The register after any bytes and their CRC, which is its complement: 32 ones remain.
RESIDUE = after_zeros(INITIAL, CRC_BITS)
