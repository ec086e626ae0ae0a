"""Cases of the coders with their packer: ZVC and BRC, both directions."""

from __future__ import annotations

from random import Random

import torch
from actcodec.golden import brc, zvc
from cdu_spec.bitstream import MASK_BYTES, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, LANES, PACKED_BYTES
from torch import Tensor

from cdu_verif.cases.case import Case, Ports, corner_blocks, integers, mixed_blocks, words


def payload_words(ports: Ports, stream: str, payload: bytes) -> list[int]:
    """A payload of at least one byte as the words of a stream, ``last`` with the final one, zeros beyond its end."""
    rows = -(-len(payload) // PACKED_BYTES)
    data = torch.zeros(rows * PACKED_BYTES, dtype=torch.uint8)
    data[: len(payload)] = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
    count = torch.full((rows,), PACKED_BYTES)
    count[-1] = len(payload) - (rows - 1) * PACKED_BYTES
    last = torch.zeros(rows, dtype=torch.int64)
    last[-1] = 1
    return words(ports, stream, data=data.reshape(rows, PACKED_BYTES), count=count, last=last)


def populations(rng: Random) -> Tensor:
    """Blocks (65, 64) with 0, 1, ... 64 non-zero values at random places."""
    blocks = integers(rng, 1, 127, BLOCK_VALUES + 1, BLOCK_VALUES)
    order = torch.rand(blocks.shape, generator=torch.Generator().manual_seed(rng.getrandbits(32))).argsort(1)
    return torch.where(order < torch.arange(BLOCK_VALUES + 1)[:, None], blocks, 0)


class _Coder:
    """Cases of an encoder; subclasses turn them round."""

    def __init__(self, mode: Mode, decoder: bool) -> None:
        self.mode, self.decoder = mode, decoder

    def case(self, ports: Ports, name: str, values: Tensor) -> Case:
        """A job of rows: (n, 8), whole blocks in modes with ZVC."""
        rows = values.reshape(-1, LANES).to(torch.int8)
        packed = self._payload(values)
        settings = {"mode": int(self.mode)} if "mode" in ports else {}
        if self.decoder:
            inputs = payload_words(ports, "i", packed)
            settings["beats"] = len(rows)
            flags = {"idle": 1, "truncated": 0, "surplus": 0}
            return Case(name, inputs, words(ports, "o", values=rows), settings, flags, starts=True, steady=("o",))
        last = torch.zeros(len(rows), dtype=torch.int64)
        last[-1] = 1
        return Case(name, words(ports, "i", values=rows, last=last), payload_words(ports, "o", packed), settings, steady=("i",))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Directed blocks; every mask population; jobs of every length of the last word; for decoders broken payloads."""
        if self.mode is Mode.BRC:
            rows = integers(rng, 0, 1, 256, 8)
            cases = [self.case(ports, f"{count}_rows", rows[:count]) for count in (1, 2, 15, 16, 17, 31, 32, 33, 256)]
            every = torch.arange(256)[:, None] >> torch.arange(8) & 1
            cases.append(self.case(ports, "every_byte", every))
        else:
            cases = [self.case(ports, name, blocks) for name, blocks in corner_blocks(-128, 127).items()]
            several = populations(rng)
            cases.append(self.case(ports, "every_population", several))
            cases += [self.case(ports, f"one_block_{count}", several[count]) for count in range(BLOCK_VALUES + 1)]
        return [*cases, *self._broken(ports, rng)] if self.decoder else cases

    def _broken(self, ports: Ports, rng: Random) -> list[Case]:
        """Payloads that end too early (zeros take the place of what is missing) or too late, and a good one after each."""
        cases = []
        for number in range(6):
            good = self.random_values(rng, 3)
            whole = self.case(ports, "after_broken", good)
            payload = self._payload(good)
            cut = rng.randint(1, len(payload) - 1)
            short = payload[:cut] + bytes(len(payload) - cut)
            rows = self._decoded_with_zeros(short, len(whole.expected))
            flags = {"idle": 1, "truncated": 1, "surplus": 0}
            name = f"truncated_{number}"
            settings = whole.settings
            expected = words(ports, "o", values=rows)
            cases.append(Case(name, payload_words(ports, "i", payload[:cut]), expected, settings, flags, True, ()))
            cases.append(whole)
            longer = payload + rng.randbytes(rng.choice((1, 15, 16, 40)))
            flags = {"idle": 1, "truncated": 0, "surplus": 1}
            inputs = payload_words(ports, "i", longer)
            cases.append(Case(f"surplus_{number}", inputs, whole.expected, settings, flags, True, ()))
            cases.append(whole)
        return cases

    def _payload(self, values: Tensor) -> bytes:
        rows = values.reshape(-1, LANES).to(torch.int8)
        payload = brc.encode(rows.float()) if self.mode is Mode.BRC else zvc.encode(rows.reshape(-1, BLOCK_VALUES))
        return bytes(payload.tolist())

    def _decoded_with_zeros(self, payload: bytes, rows: int) -> Tensor:
        """Rows of a payload behind which zeros follow without end, decoded after docs/bitstream.md."""
        tensor = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        if self.mode is Mode.BRC:
            return brc.decode(tensor, rows * LANES).reshape(rows, LANES).to(torch.int8)
        endless = payload + bytes(rows // 8 * (MASK_BYTES + BLOCK_VALUES))
        end = 0
        for _ in range(rows // 8):
            end += MASK_BYTES + int.from_bytes(endless[end : end + MASK_BYTES], "little").bit_count()
        exact = torch.frombuffer(bytearray(endless[:end]), dtype=torch.uint8)
        return zvc.decode(exact, rows // 8).reshape(rows, LANES)

    def random_values(self, rng: Random, blocks: int) -> Tensor:
        """Rows for a random job."""
        if self.mode is Mode.BRC:
            return integers(rng, 0, 1, 8 * blocks + rng.randint(0, 7), 8)
        return mixed_blocks(rng, -128, 127, blocks)

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Random content."""
        return self.case(ports, "random", self.random_values(rng, blocks))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Random content, and where the length depends on it the shortest and the longest."""
        cases = [self.random(config, ports, rng, blocks)]
        if self.mode is not Mode.BRC:
            cases.append(self.case(ports, "all_zero", torch.zeros(blocks, 8, 8)))
            cases.append(self.case(ports, "incompressible", integers(rng, 1, 127, blocks, 8, 8)))
        return cases


ZVC_ENCODER, ZVC_DECODER = _Coder(Mode.SFPR_ZVC, decoder=False), _Coder(Mode.SFPR_ZVC, decoder=True)
BRC_ENCODER, BRC_DECODER = _Coder(Mode.BRC, decoder=False), _Coder(Mode.BRC, decoder=True)
