"""Record of the block that appends a CRC-32 to payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu.integrity.crc_writer import CrcWriter
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.crc import CRC_BITS

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import PACKED_PORTS
from cdu_verif.formal import integrity
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import something_moves

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases

#: Bytes of a word in the proofs, the shortest possible, and bits of their count.
_BYTES = CRC_BYTES
_COUNT_BITS = _BYTES.bit_length()


def _cases() -> Cases:
    from cdu_verif.cases.crc import CRC_WRITER

    return CRC_WRITER


def _parts(number: int) -> dict[str, str]:
    """Return ports of the harness with the fields of the word in a stage."""
    word, end = f"inner_word{number}", 8 * _BYTES
    return {f"data{number}": f"{word}[0 +: {end}]", f"count{number}": f"{word}[{end} +: {_COUNT_BITS}]"}


def _joins(config: CduConfig) -> Property:
    word_bits = 8 * _BYTES + _COUNT_BITS + 1
    return integrity.words_property(
        "crc_writer",
        "joins",
        "Words leave as they came; behind the last byte of a packet that is to have a CRC its four bytes leave: for all words"
        " and stalls.",
        lambda: CrcWriter(_BYTES),
        config,
        probes={
            **{"crc2": CRC_BITS, "word1": word_bits, "word2": word_bits},
            **dict.fromkeys(("valid1", "valid2", "signs", "rest"), 1),
        },
        parameters={"BYTES": _BYTES},
        ports={**_parts(1), **_parts(2), "last2": f"inner_word2[{word_bits - 1}]"},
        words=("i", "o"),
    )


def _properties(config: CduConfig) -> list[Property]:
    return [something_moves("crc_writer", config, 8), _joins(config)]


RECORD = Record(cases=_cases, quick=[{}, *PACKED_PORTS[:1]], full=PACKED_PORTS, properties=_properties)
