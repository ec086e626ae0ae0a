"""Record of the block that checks the CRC-32 behind payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu.integrity.crc_checker import CrcChecker
from cdu_spec.config import CduConfig
from cdu_spec.crc import CRC_BITS, INITIAL, POLYNOMIAL, RESIDUE

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PACKED_PORTS
from cdu_verif.formal import integrity
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Bytes of a word in the proofs: a solver needs minutes for a register of four bytes, bit by bit.
_BYTES = 2


def _cases() -> Cases:
    from cdu_verif.cases.crc import CRC_CHECKER

    return CRC_CHECKER


def _checksum(config: CduConfig) -> Property:
    return integrity.words_property(
        "crc_checker",
        "checksum",
        "The register is that of a CRC by its definition; a packet that has one is said to be wrong if and only if its register"
        " is not the residue then: for all words and stalls.",
        lambda: CrcChecker(_BYTES),
        config,
        probes={
            **{"crc": CRC_BITS, "at_end1": 8 * _BYTES, "places1": _BYTES.bit_length()},
            **dict.fromkeys(("fresh", "last1", "signed1"), 1),
        },
        parameters={"BYTES": _BYTES, "POLYNOMIAL": POLYNOMIAL, "INITIAL": INITIAL, "RESIDUE": RESIDUE},
        ports={},
        words=("i",),
    )


def _properties(config: CduConfig) -> list[Property]:
    return [something_moves("crc_checker", config, 8), _checksum(config)]


RECORD = Record(cases=_cases, quick=[{}, *PACKED_PORTS[:1]], full=PACKED_PORTS, properties=_properties)
