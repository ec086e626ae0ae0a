"""Entropy coding of integers that are mostly near zero: narrow codes with escapes, then Huffman codes of their bytes.

An integer that fits 2 bits is one; four such codes make a byte. What does not fit leaves an escape and goes on to 4 bits, then
to 8; what fits nowhere is stored apart, in planes of its four bytes. Huffman codes of bytes that hold several codes see
neighbours together and may cost less than a bit a value, which a Huffman code of single values never does. The codes are those
of deflate (RFC 1951), canonical, chosen anew for every 2**15 bytes or so, by zlib, which looks for no repetitions but those of
one byte, and for them only where that makes the whole stream shorter.
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

#: Bits of the codes, one width after another.
WIDTHS = (2, 4, 8)
#: What a byte may be.
BYTE_VALUES = 256
#: zlib: no header, since the parts stand in a form that has one; most memory, so that a block is as long as can be.
_RAW, _LEVEL, _MEMORY = -zlib.MAX_WBITS, 6, 9
#: Huffman codes of bytes alone, and with run lengths. Which is shorter depends on how runs are distributed.
_STRATEGIES = (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)
#: Run lengths are not tried where fewer than one byte in so many is part of a run: they make next to nothing shorter.
_FEW_RUNS = 64


@dataclass(frozen=True, eq=False)
class CodedIntegers:
    """Integers after coding; how many they are is not in it."""

    codes: tuple[Tensor, ...]  #: uint8 (bytes,): deflate streams of the codes of each width
    planes: tuple[Tensor, ...]  #: uint8 (bytes,): deflate streams of the bytes, lowest first, of what fits no width

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(stream.numel() for stream in (*self.codes, *self.planes))


class IntegerEncoder:
    """Takes integers piece by piece."""

    def __init__(self, device: torch.device) -> None:
        self._codes = [_Packer(width, device) for width in WIDTHS]
        self._planes: list[Tensor] = []

    def add(self, values: Tensor) -> None:
        """int32 of any shape, magnitudes up to 2**30, that follow those before."""
        require("values", values, (torch.int32,))
        codes, planes = _narrowed(values)
        for packer, of_width in zip(self._codes, codes, strict=True):
            packer.add(of_width)
        self._planes.append(planes)

    def coded(self) -> CodedIntegers:
        """All of them, on the same device."""
        planes = torch.cat(self._planes, 1)
        return CodedIntegers(tuple(deflated(packer.packed()) for packer in self._codes), tuple(map(deflated, planes)))


class IntegerDecoder:
    """Gives integers piece by piece."""

    def __init__(self, coded: CodedIntegers) -> None:
        self._codes = [inflated(stream) for stream in coded.codes]
        self._planes = torch.stack([inflated(stream) for stream in coded.planes])
        self._places = [0] * (len(WIDTHS) + 1)

    def take(self, count: int) -> Tensor:
        """The next ``count`` integers, int32 (count,)."""
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
    """Codes of one width, packed as :func:`~actcodec.golden.codes.pack_tight` packs all of them."""

    def __init__(self, width: int, device: torch.device) -> None:
        self._width = width
        self._packed: list[Tensor] = []
        self._left = torch.zeros(0, dtype=torch.uint8, device=device)

    def add(self, codes: Tensor) -> None:
        """Codes, uint8 (n,), that follow those before."""
        codes = torch.cat((self._left, codes))
        whole = codes.numel() // LANES * LANES
        self._packed.append(pack_tight(codes[:whole], self._width))
        self._left = codes[whole:].clone()

    def packed(self) -> Tensor:
        """Bytes of all codes."""
        return torch.cat((*self._packed, pack_tight(self._left, self._width)))


def encode(values: Tensor) -> CodedIntegers:
    """int32 of any shape, magnitudes up to 2**30, to coded integers on the same device."""
    encoder = IntegerEncoder(values.device)
    encoder.add(values)
    return encoder.coded()


def decode(coded: CodedIntegers, count: int) -> Tensor:
    """The ``count`` integers of :func:`encode`, int32 (count,)."""
    return IntegerDecoder(coded).take(count)


def estimated_bits(values: Tensor) -> float:
    """About what :func:`encode` would need: the entropy of all bytes, by their frequencies in each stream."""
    codes, planes = _narrowed(values)
    packed = (pack_tight(of_width, width) for of_width, width in zip(codes, WIDTHS, strict=True))
    return sum(entropy(torch.bincount(stream, minlength=BYTE_VALUES)) for stream in (*packed, *planes))


def entropy(counts: Tensor) -> float:
    """Bits of bytes that occur so often, int64 (256,), coded one by one as well as can be."""
    occurring = counts[counts > 0].to(torch.float64)
    shares = occurring / occurring.sum()
    return float(-(shares.log2() * occurring).sum())


def _limit(width: int) -> int:
    """Greatest magnitude that a code of so many bits has."""
    return (1 << (width - 1)) - 1


def _escape(width: int) -> int:
    """The code, all ones, that says that a value goes on to the next width."""
    return (1 << width) - 1


def _narrowed(values: Tensor) -> tuple[list[Tensor], Tensor]:
    """The codes of each width, uint8 (n,), and what fits none in planes of bytes, uint8 (4, n)."""
    codes, values = [], values.flatten()
    for width in WIDTHS:
        shifted = values + _limit(width)
        escaped = (shifted < 0).logical_or_(shifted >= _escape(width))
        codes.append(shifted.masked_fill_(escaped, _escape(width)).to(torch.uint8))
        values = select(values, escaped)
    # 0, -1, 1, -2 ... in turn, so that high bytes are zeros.
    folded = (values << 1) ^ (values >> 31)
    return codes, folded.view(torch.uint8).view(-1, folded.element_size()).t().contiguous()


def _joined(planes: Tensor) -> Tensor:
    """The integers of planes of bytes, int32."""
    folded = torch.stack(planes.unbind(), 1).view(torch.int32).flatten()
    return ((folded >> 1) & torch.iinfo(torch.int32).max) ^ -(folded & 1)


def deflated(codes: Tensor) -> Tensor:
    """Raw deflate stream of bytes, on the same device; of none nothing."""
    if not codes.numel():
        return codes
    raw = codes.cpu().numpy().tobytes()
    strategies = _STRATEGIES if _run_bytes(codes) * _FEW_RUNS > codes.numel() else _STRATEGIES[:1]
    packers = [zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY, strategy) for strategy in strategies]
    stream = min((packer.compress(raw) + packer.flush() for packer in packers), key=len)
    return tensor_of(stream, codes.device)


def _run_bytes(codes: Tensor) -> int:
    """How many bytes are the same as the three before them, the least that a run length stands for."""
    same = codes[1:] == codes[:-1]
    return int((same[2:] & same[1:-1] & same[:-2]).sum())


def inflated(stream: Tensor) -> Tensor:
    """The inverse of :func:`deflated`."""
    if not stream.numel():
        return stream
    return tensor_of(zlib.decompress(stream.cpu().numpy().tobytes(), _RAW), stream.device)
