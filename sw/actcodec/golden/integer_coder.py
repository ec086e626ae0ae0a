"""Entropy coding of integers that are mostly near zero: narrow codes with escapes, then Huffman codes of their bytes.

An integer that fits 2 bits is one code, and four such codes make a byte. Other integers leave an escape and continue at 4 bits,
then at 8; those that do not fit 8 bits are stored apart, in planes of their four bytes. A Huffman code of bytes that hold
several codes covers neighbours together and may cost less than a bit per value, unlike a Huffman code of single values. The
codes are those of deflate (RFC 1951), canonical, chosen anew about every 2**15 bytes by zlib, which looks for no repetitions
except runs of one byte, and for those only if that makes the whole stream shorter.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.golden.checks import require
from actcodec.golden.codes import pack_tight, unpack_part
from actcodec.golden.movement import select, spread, tensor_of

#: Bits of the codes, in the order in which widths are tried.
WIDTHS = (2, 4, 8)
#: Number of values of a byte.
BYTE_VALUES = 256
#: Parameters of zlib: no header, since the container has one; most memory, so that blocks are as long as possible.
_RAW, _LEVEL, _MEMORY = -zlib.MAX_WBITS, 6, 9
#: Strategies of zlib: Huffman codes of bytes alone, and with run lengths; the distribution of runs decides which is shorter.
_STRATEGIES = (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)
#: Run lengths are not tried if less than one byte in this number is part of a run, because the gain would be tiny.
_FEW_RUNS = 64


@dataclass(frozen=True, eq=False)
class CodedIntegers:
    """Integers after coding, without their number."""

    codes: tuple[Tensor, ...]  #: uint8 (bytes,): deflate streams of the codes of each width
    planes: tuple[Tensor, ...]  #: uint8 (bytes,): deflate streams of the bytes, lowest first, of integers that fit no width

    @property
    def nbytes(self) -> int:
        """Return the bytes of all parts."""
        return sum(stream.numel() for stream in (*self.codes, *self.planes))


class IntegerEncoder:
    """Encoder that takes integers piece by piece."""

    def __init__(self, device: torch.device) -> None:
        self._codes = [_Packer(width, device) for width in WIDTHS]
        self._planes: list[Tensor] = []

    def add(self, values: Tensor) -> None:
        """Append integers, int32 of any shape, magnitudes up to 2**30."""
        require("values", values, (torch.int32,))
        codes, planes = _narrowed(values)
        for packer, of_width in zip(self._codes, codes, strict=True):
            packer.add(of_width)
        self._planes.append(planes)

    def coded(self) -> CodedIntegers:
        """Return all integers coded, on the same device."""
        planes = torch.cat(self._planes, 1)
        return CodedIntegers(tuple(deflated(packer.packed()) for packer in self._codes), tuple(map(deflated, planes)))


class IntegerDecoder:
    """Decoder that returns integers piece by piece."""

    def __init__(self, coded: CodedIntegers) -> None:
        self._codes = [inflated(stream) for stream in coded.codes]
        self._planes = torch.stack([inflated(stream) for stream in coded.planes])
        self._places = [0] * (len(WIDTHS) + 1)

    def take(self, count: int) -> Tensor:
        """Return the next ``count`` integers, int32 (count,)."""
        levels = []
        for level, width in enumerate(WIDTHS):
            levels.append(self._next(level, width, count))
            count = int((levels[-1] == _escape(width)).sum())
        values = _joined(self._planes[:, self._advanced(-1, count)])
        for width, codes in zip(reversed(WIDTHS), reversed(levels), strict=True):
            escaped = codes == _escape(width)
            values = torch.where(escaped, spread(values, escaped), codes.to(torch.int32) - _limit(width))
        return values

    def _next(self, level: int, width: int, count: int) -> Tensor:
        return unpack_part(self._codes[level], width, self._advanced(level, count))

    def _advanced(self, level: int, count: int) -> slice:
        first = self._places[level]
        self._places[level] += count
        return slice(first, first + count)


class _Packer:
    """Packer of codes of one width that come in pieces, equivalent to one :func:`~actcodec.golden.codes.pack_tight`."""

    def __init__(self, width: int, device: torch.device) -> None:
        self._width = width
        self._packed: list[Tensor] = []
        self._left = torch.zeros(0, dtype=torch.uint8, device=device)

    def add(self, codes: Tensor) -> None:
        """Append codes, uint8 (n,)."""
        codes = torch.cat((self._left, codes))
        whole = codes.numel() // LANES * LANES
        self._packed.append(pack_tight(codes[:whole], self._width))
        self._left = codes[whole:].clone()

    def packed(self) -> Tensor:
        """Return the bytes of all codes."""
        return torch.cat((*self._packed, pack_tight(self._left, self._width)))


def encode(values: Tensor) -> CodedIntegers:
    """Encode int32 of any shape, magnitudes up to 2**30, on the same device."""
    encoder = IntegerEncoder(values.device)
    encoder.add(values)
    return encoder.coded()


def decode(coded: CodedIntegers, count: int) -> Tensor:
    """Return the ``count`` integers of :func:`encode`, int32 (count,)."""
    return IntegerDecoder(coded).take(count)


def estimated_bits(values: Tensor) -> float:
    """Return about the bits that :func:`encode` would need: the entropy of all bytes, by their frequencies per stream."""
    codes, planes = _narrowed(values)
    packed = (pack_tight(of_width, width) for of_width, width in zip(codes, WIDTHS, strict=True))
    streams = (stream for stream in (*packed, *planes) if stream.numel())
    return sum(entropy(torch.bincount(stream, minlength=BYTE_VALUES)) for stream in streams)


def entropy(counts: Tensor) -> float:
    """Return the entropy, in bits, of bytes with these frequencies, int64 (256,)."""
    occurring = counts[counts > 0].to(torch.float64)
    return float(-((occurring / occurring.sum()).log2() * occurring).sum())


def _limit(width: int) -> int:
    """Return the greatest magnitude that fits a code of ``width`` bits."""
    return (1 << (width - 1)) - 1


def _escape(width: int) -> int:
    """Return the code, all ones, of values that continue at the next width."""
    return (1 << width) - 1


def _narrowed(values: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return the codes of each width, uint8 (n,), and integers that fit no width as planes of bytes, uint8 (4, n)."""
    codes, values = [], values.flatten()
    for width in WIDTHS:
        shifted = values + _limit(width)
        escaped = (shifted < 0).logical_or_(shifted >= _escape(width))
        codes.append(shifted.masked_fill_(escaped, _escape(width)).to(torch.uint8))
        values = select(values, escaped)
    # The fold orders integers 0, -1, 1, -2 ..., so that high bytes are zeros.
    folded = (values << 1) ^ (values >> 31)
    return codes, folded.view(torch.uint8).view(-1, folded.element_size()).t().contiguous()


def _joined(planes: Tensor) -> Tensor:
    """Return the integers of planes of bytes, int32."""
    folded = torch.stack(planes.unbind(), 1).view(torch.int32).flatten()
    return ((folded >> 1) & torch.iinfo(torch.int32).max) ^ -(folded & 1)


def deflated(codes: Tensor) -> Tensor:
    """Return the raw deflate stream of bytes, on the same device; an empty stream for no bytes."""
    if not codes.numel():
        return codes
    raw = codes.cpu().numpy().tobytes()
    strategies = _STRATEGIES if _run_bytes(codes) * _FEW_RUNS > codes.numel() else _STRATEGIES[:1]
    packers = [zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY, strategy) for strategy in strategies]
    stream = min((packer.compress(raw) + packer.flush() for packer in packers), key=len)
    return tensor_of(stream, codes.device)


def _run_bytes(codes: Tensor) -> int:
    """Return how many bytes equal the three before them, the shortest run that a run length stands for."""
    same = codes[1:] == codes[:-1]
    return int((same[2:] & same[1:-1] & same[:-2]).sum())


def inflated(stream: Tensor) -> Tensor:
    """Return the bytes of a raw deflate stream; inverse of :func:`deflated`."""
    if not stream.numel():
        return stream
    return tensor_of(zlib.decompress(stream.cpu().numpy().tobytes(), _RAW), stream.device)
