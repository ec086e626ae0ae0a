"""``CduConfig``: the one description of a unit that every package reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from cdu_tools.near_names import advice
from cdu_tools.numbers import is_whole

from cdu_spec import gmc
from cdu_spec.affine import BASE_BITS
from cdu_spec.config_names import require_name, with_changes
from cdu_spec.config_rules import (
    COMPLETIONS,
    COUNTER_BITS,
    DMA_BITS,
    DMA_JOBS,
    DMA_WORDS,
    DUPLEX,
    MAX_CDUS,
    OWN_CLOCKS,
    PACKED_PORT_BITS,
    PORT_BEATS,
    RESET_KINDS,
    RESET_PORTS,
    ConfigError,
    each_once,
    require_one_of,
    written,
)
from cdu_spec.config_texts import value_of
from cdu_spec.dct import LEAST, PRECISIONS
from cdu_spec.geometry import BLOCK_SIDE, COEFFICIENT_BITS, LANES, VALUE_BITS
from cdu_spec.modes import JPEG_ACT_MODES, MAX_BLOCK_BYTES, Coder, Dtype, Mode
from cdu_spec.mx import MX_FORMATS
from cdu_spec.rounding import DEFAULT_ROUNDING, Rounding
from cdu_spec.sfpr import RECIPROCAL_BITS, SCALE_BITS, SFPR_RECIPROCAL_BITS

#: Bytes of the longest block of GMC, rounded up to a multiple of 8: each of 8 columns has a slot.
_GMC_SLOTS = -(-gmc.MAX_WRITTEN_BLOCK_BYTES // BLOCK_SIDE) * BLOCK_SIDE
#: Modes whose values bypass the CDUs.
_PAST_CDUS = {Mode.BYPASS, Mode.MX}
#: Parameters that :meth:`CduConfig.to_dict` omits if they are not used.
_LEFT_OUT = ("payload_crc", "completions", "dma_bits", "dma_words", "own_clocks")


@dataclass(frozen=True)
class CduConfig:
    """Parameters of a unit. Every instance is valid: the constructor raises :class:`ConfigError` otherwise.

    Parameters
    ----------
    name
        Name of the configuration, up to 64 characters. Files and the Verilog top are named :attr:`unit_name`, which begins with
        it.
    value_format
        Number format of activations at the uncompressed ports: ``fp32``, ``bf16`` or ``fp16``.
    scale_bits
        Significand bits of SFPR's multiplier, hidden bit included: 24 (float32), 11 or 8 (bfloat16).
    reciprocal_bits
        Significand bits of inverse SFPR's multiplier, hidden bit included: 24 (float32), 16 or 12; 0 selects the bits of the
        reciprocals that encoders write: 12, with affine modes 24.
    const_bits
        Fraction bits of the DCT constants, 8..13. :meth:`override` and files also accept ``precision``, a name of
        :data:`~cdu_spec.dct.PRECISIONS` that sets this and the next: ``least``, the default, or ``ieee1180``.
    pass1_bits
        Fraction bits kept between both DCT passes, 0..4 and below ``const_bits``.
    sample_bits
        Bits of the samples at the DCT and IDCT blocks: 8 for the unit; 9 builds the two blocks alone for the
        IEEE 1180 procedure, which is defined on 9-bit samples.
    rounding
        Rounding of the shift quantiser, ``half_away`` or ``trunc``.
    modes
        Modes that are built in, a non-empty subset of the labels of :class:`~cdu_spec.modes.Mode` with at least one mode
        other than ``bypass`` and ``mx``. A mode that is left out costs no gates. Default: those of JPEG-ACT.
    coders
        Coders for blocks of jpeg-act: ``zvc`` (as published), ``gmc``, or both.
    cdus
        Number of CDUs behind one pair of ports, 1..8 (the paper's N). The bytes do not depend on it.
    duplex
        ``full``: compression and decompression at the same time; ``half``: one direction at a time, DCT units and alignment
        buffer shared.
    value_port_bits
        Width of the ports of uncompressed values, 1, 2, 4 or 8 rows of 8 values; 0 selects the width that the CDUs need.
    packed_port_bits
        Width of the ports of packed bytes: 128, 256, 512 or 1024 (a 128-byte DMA packet per transfer); 0 selects the width
        that incompressible data need (9 bytes per cycle and CDU).
    dct_stages
        Additional pipeline registers in each 8-point pass of the transforms: 0, or 1 for a shorter clock period. This and the
        next two parameters cost flip-flops and latency; bytes and rate do not depend on them.
    multiplier_stages
        Additional pipeline registers at the multipliers of SFPR and inverse SFPR: 0 or 1.
    register_slices
        Register slices, which cut ``valid`` and ``ready``, at both ends of the lanes: 0 or 1.
    counter_bits
        Bits of the counters of cycles, values and bytes of each direction: 64, 32 (they wrap around after 2**32), or 0, which
        leaves out these and those of stalls. Missing counters read 0; JOBS_DONE always exists.
    reset_active
        Level of the reset: ``high``, port ``rst``, or ``low``, port ``aresetn``.
    reset_kind
        ``sync``: registers are reset at a clock edge. ``async``: at once, without a clock. Both are released synchronously,
        as AXI requires (ARM IHI 0022, A3.1.2).
    payload_crc
        1: a payload may be followed by its CRC-32, which the unit writes and checks for jobs that request it. 0: no payload has
        one.
    completions
        Room of each direction for jobs and completion records: 4, 8, 16 or 32; a record holds the number of payload bytes
        of a job and its own errors. 0 leaves records out. A DMA engine writes its own.
    dma_bits
        Width of the AXI4 port of a DMA engine in front of the unit: 64, 128, 256 or 512; 0 leaves the engine out.
    dma_words
        Words of a tensor or a payload that each direction of a DMA engine may have requested from memory: 64, 128, 256 or 512,
        and half as many bursts written but not yet answered, or as many where a row of a tile is a word; 0: 64. A memory with a
        long latency needs more.
    own_clocks
        Ports with clocks of their own, unrelated to ``clk``: ``registers`` (AXI4-Lite), ``values`` (with the scales),
        ``packed``; with a DMA engine only ``registers``. They need ``reset_kind`` ``async``, because one clock may run before
        another. Default: ``none``, ``clk`` clocks all ports.
    """

    name: str = "tiny"
    value_format: str = "fp32"
    scale_bits: int = 8
    reciprocal_bits: int = 0
    const_bits: int = LEAST.const_bits
    pass1_bits: int = LEAST.pass1_bits
    sample_bits: int = 8
    rounding: str = DEFAULT_ROUNDING.value
    modes: tuple[str, ...] = tuple(mode.label for mode in JPEG_ACT_MODES)
    coders: tuple[str, ...] = (Coder.ZVC.label,)
    cdus: int = 1
    duplex: str = "full"
    value_port_bits: int = 0
    packed_port_bits: int = 0
    dct_stages: int = 0
    multiplier_stages: int = 0
    register_slices: int = 0
    counter_bits: int = max(COUNTER_BITS)
    reset_active: str = "high"
    reset_kind: str = "sync"
    payload_crc: int = 0
    completions: int = 0
    dma_bits: int = 0
    dma_words: int = 0
    own_clocks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(field.default, int):
                value = getattr(self, field.name)
                if not is_whole(value):
                    raise ConfigError(f"{field.name} = {value!r} is not allowed: use a whole number")
        require_name(self.name)
        self._one_of("value_format", [dtype.label for dtype in Dtype])
        self._one_of("scale_bits", SCALE_BITS)
        self._one_of("reciprocal_bits", (0, *RECIPROCAL_BITS))
        self._one_of("const_bits", range(8, 14))
        self._one_of("pass1_bits", range(0, 5))
        self._one_of("sample_bits", (8, 9))
        self._one_of("rounding", [rounding.value for rounding in Rounding])
        self._each_once("modes", [mode.label for mode in Mode])
        if set(self.modes) == {Mode.BYPASS.label}:
            raise ConfigError("modes = bypass alone is not allowed: a unit that only passes values on needs no CDU; add a mode")
        if self.has_mx and not self.packed_modes and not self.has_gmc:
            raise ConfigError(
                f"modes = {', '.join(self.modes)} is not allowed, for nothing would pass the CDUs: add a mode, or take the "
                "blocks mx_encoder and mx_decoder"
            )
        if self.has_affine and self.used_reciprocal_bits < max(RECIPROCAL_BITS):
            raise ConfigError(
                f"reciprocal_bits = {self.reciprocal_bits} is not allowed with affine modes, whose reciprocals are float32 "
                f"numbers: use 0 or {max(RECIPROCAL_BITS)}"
            )
        self._each_once("coders", [coder.label for coder in Coder])
        if self.has_gmc and Mode.JPEG_ACT not in self.built_modes:
            raise ConfigError("coders = gmc is not allowed without mode jpeg-act, whose coefficients it codes: add the mode")
        self._one_of("cdus", range(1, MAX_CDUS + 1))
        self._one_of("duplex", DUPLEX)
        self._one_of("value_port_bits", [0, *(rows * self.beat_bits for rows in PORT_BEATS)])
        self._one_of("packed_port_bits", [0, *PACKED_PORT_BITS])
        for name in ("dct_stages", "multiplier_stages", "register_slices", "payload_crc"):
            self._one_of(name, range(2))
        self._one_of("counter_bits", COUNTER_BITS)
        self._one_of("reset_active", RESET_PORTS)
        self._one_of("reset_kind", RESET_KINDS)
        self._one_of("completions", COMPLETIONS)
        self._one_of("dma_bits", DMA_BITS)
        self._one_of("dma_words", (0, *DMA_WORDS))
        if self.dma_words and not self.dma_bits:
            raise ConfigError(f"dma_words = {self.dma_words} is not allowed without a DMA engine: use 0, or give dma_bits, too")
        if self.completions and self.dma_bits:
            raise ConfigError(
                f"completions = {self.completions} is not allowed with a DMA engine, which writes a record of every job to "
                "memory: use 0"
            )
        if self.own_clocks:
            self._each_once("own_clocks", OWN_CLOCKS)
            if self.reset_kind != "async":
                raise ConfigError(
                    f"reset_kind = {self.reset_kind} is not allowed with own_clocks, which need not run while they are reset: "
                    "use async"
                )
        if self.dma_bits and set(self.own_clocks) - {"registers"}:
            raise ConfigError(
                f"own_clocks = {', '.join(self.own_clocks)} is not allowed with a DMA engine, behind which the unit's streams "
                "are: use registers, or no engine"
            )

    def _one_of(self, name: str, allowed: Any) -> None:
        require_one_of(name, getattr(self, name), allowed)

    def _each_once(self, name: str, allowed: Sequence[str]) -> None:
        """Check that a parameter lists some of the allowed labels once each, and bring them into their order."""
        object.__setattr__(self, name, each_once(name, getattr(self, name), allowed))

    @property
    def unit_name(self) -> str:
        """Name of the files and of the Verilog top: :attr:`name`, and the differences from the configuration of that name.

        Two different units without names of their own have different unit names.
        """
        return self.name if self.name not in CONFIGS else self.changed_name(CONFIGS[self.name])

    def changed_name(self, base: CduConfig) -> str:
        """Return the name of ``base`` with the parameters and values in which this configuration differs, except its name.

        Example: ``tiny_cdus_3``. A checksum replaces the differences if the name would be too long.
        """
        changed = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}
        return with_changes(base.name, {name: value for name, value in changed.items() if value != getattr(base, name)})

    @property
    def rounding_mode(self) -> Rounding:
        """:attr:`rounding` as the enumeration."""
        return Rounding(self.rounding)

    @property
    def built_modes(self) -> tuple[Mode, ...]:
        """:attr:`modes` as enumerations."""
        return tuple(Mode.from_label(label) for label in self.modes)

    @property
    def built_coders(self) -> tuple[Coder, ...]:
        """:attr:`coders` as enumerations."""
        return tuple(coder for coder in Coder if coder.label in self.coders)

    @property
    def has_gmc(self) -> bool:
        """Return whether blocks of jpeg-act may be coded with GMC."""
        return Coder.GMC in self.built_coders

    @property
    def packed_modes(self) -> tuple[Mode, ...]:
        """Built-in modes whose blocks a CDU codes as published: without GMC, and not bypassing the CDUs."""
        others = _PAST_CDUS if Coder.ZVC in self.built_coders else {*_PAST_CDUS, Mode.JPEG_ACT}
        return tuple(mode for mode in self.built_modes if mode not in others)

    @property
    def has_affine(self) -> bool:
        """Return whether an affine mode is built in."""
        return any(mode.is_affine for mode in self.built_modes)

    @property
    def has_offsets(self) -> bool:
        """Return whether a mode with offsets beside its scales is built in."""
        return any(mode.has_offsets for mode in self.built_modes)

    @property
    def has_ranges(self) -> bool:
        """Return whether a mode with ranges in its blocks is built in."""
        return any(mode.has_ranges for mode in self.built_modes)

    @property
    def draws(self) -> bool:
        """Return whether a mode with stochastic rounding is built in."""
        return any(mode.draws for mode in self.built_modes)

    @property
    def has_dct(self) -> bool:
        """Return whether a mode with transformed blocks is built in."""
        return any(mode.has_dct for mode in self.built_modes)

    @property
    def has_bypass(self) -> bool:
        """Return whether raw values may pass the unit."""
        return Mode.BYPASS in self.built_modes

    @property
    def has_mx(self) -> bool:
        """Return whether blocks of MX are built in."""
        return Mode.MX in self.built_modes

    @property
    def mx_rows(self) -> int:
        """Rows of 8 values that mode mx codes per cycle: those of a value port word, if a slice has room for them."""
        most = max(MX_FORMATS.values(), key=lambda kind: kind.bits)
        return max(rows for rows in PORT_BEATS if rows <= self.port_beats and most.row_bytes(rows) <= self.slice_bytes)

    @property
    def has_tiles(self) -> bool:
        """Return whether a mode that needs the alignment buffer is built in."""
        return any(mode.in_tiles for mode in self.built_modes)

    @property
    def value_bits(self) -> int:
        """Bits of SFPR's result: 8, or 16 when an affine mode is built in."""
        return BASE_BITS if self.has_affine else VALUE_BITS

    @property
    def used_reciprocal_bits(self) -> int:
        """Significand bits of a reciprocal that the unit multiplies with."""
        return self.reciprocal_bits or (max(RECIPROCAL_BITS) if self.has_affine else SFPR_RECIPROCAL_BITS)

    @property
    def coefficient_bits(self) -> int:
        """Bits of a DCT coefficient, sign included: 12.

        The IEEE 1180 build has 12 too; its 9-bit samples are the clipped outputs of a transform that accepts 12-bit
        coefficients.
        """
        return COEFFICIENT_BITS

    @property
    def beat_bits(self) -> int:
        """Bits of a row of 8 values at an uncompressed port."""
        return LANES * self.dtype.bits

    @property
    def port_beats(self) -> int:
        """Rows of 8 values per word of an uncompressed port: 1, 2, 4 or 8. Called P in the blocks."""
        return self.value_port_bits // self.beat_bits or next(rows for rows in PORT_BEATS if rows >= self.cdus)

    @property
    def packed_bytes(self) -> int:
        """Bytes per word of a packed port: 16, 32, 64 or 128."""
        return (self.packed_port_bits or next(bits for bits in PACKED_PORT_BITS if bits >= 8 * self._full_slice_bytes)) // 8

    @property
    def slice_bytes(self) -> int:
        """Bytes per cycle that the collector takes and the splitter gives.

        They are as many as all CDUs together need for the longest blocks, and at most a word of the packed port.
        """
        return min(self._full_slice_bytes, self.packed_bytes)

    @property
    def _full_slice_bytes(self) -> int:
        """Bytes per cycle with which the longest block passes within the cycles of its turn."""
        return (_GMC_SLOTS if self.has_gmc else MAX_BLOCK_BYTES) // (BLOCK_SIDE // self.cdus)

    @property
    def block_bytes(self) -> int:
        """Bytes of the longest packed block, rounded up to a multiple of 8."""
        longest = max((mode.max_block_bytes for mode in self.built_modes if mode not in _PAST_CDUS), default=BLOCK_SIDE)
        return -(-longest // 8) * 8

    @property
    def ledger_jobs(self) -> int:
        """Jobs whose errors each direction keeps apart: ``completions``, or those that a DMA engine has under way; 0: none."""
        return DMA_JOBS if self.dma_bits else self.completions

    @property
    def reset_port(self) -> str:
        """Name of the port of the reset."""
        return RESET_PORTS[self.reset_active]

    @property
    def clock_ports(self) -> dict[str, tuple[str, str]]:
        """Names of the ports of clock and reset, by domain: ``sync``, and :attr:`own_clocks`."""
        own = {name: (f"{name}_clk", f"{name}_{self.reset_port}") for name in self.own_clocks}
        return {"sync": ("clk", self.reset_port)} | own

    @property
    def dtype(self) -> Dtype:
        """:attr:`value_format` as the enumeration."""
        return Dtype.from_label(self.value_format)

    def to_dict(self) -> dict[str, Any]:
        """Return all parameters as plain values (JSON, TOML), without optional ones that are not used."""
        lists = ("modes", "coders", "own_clocks")
        values = asdict(self) | {name: list(getattr(self, name)) for name in lists}
        return {name: value for name, value in values.items() if name not in _LEFT_OUT or value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CduConfig:
        """Invert :meth:`to_dict`; missing parameters have their defaults. Raises ConfigError as :meth:`override` does."""
        return cls().override(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})

    def override(self, **values: Any) -> CduConfig:
        """Return a copy with some parameters replaced; ``precision`` replaces ``const_bits`` and ``pass1_bits``.

        Raises ConfigError for a name that is not a parameter and for values that are not allowed.
        """
        known = {"precision", *(field.name for field in fields(self))}
        for name in values:
            if name not in known:
                raise ConfigError(f"{name!r} is not a parameter of a configuration: {advice(name, sorted(known))}")
        if "precision" in values:
            values = _precision(values.pop("precision")) | values
        return replace(self, **values)

    def adapted(self, **values: Any) -> CduConfig:
        """Return :meth:`override`'s copy, in which the other parameters give way to ``values``.

        A value port keeps its rows; coder gmc gets its mode, or leaves if ``modes`` lacks it; reciprocal bits, completion
        records and clocks that cannot be had are left out.
        """
        wanted, suited = asdict(self) | values, dict[str, Any]()
        if Coder.GMC.label in wanted["coders"] and Mode.JPEG_ACT.label not in wanted["modes"]:
            added = {"modes": (*wanted["modes"], Mode.JPEG_ACT.label)}
            suited |= added if "coders" in values else {"coders": (Coder.ZVC.label,)}
        affine = any(Mode.from_label(label).is_affine for label in wanted["modes"])
        if affine and self.reciprocal_bits < max(RECIPROCAL_BITS):
            suited["reciprocal_bits"] = 0
        if wanted["dma_bits"]:
            suited |= {"completions": 0, "own_clocks": tuple({"registers"} & set(self.own_clocks))}
        else:
            suited["dma_words"] = 0
        if values.get("own_clocks"):
            suited["reset_kind"] = "async"
        elif "reset_kind" in values and values["reset_kind"] != "async":
            suited["own_clocks"] = ()
        if "value_format" in values and self.value_port_bits:
            suited["value_port_bits"] = self.port_beats * LANES * Dtype.from_label(values["value_format"]).bits
        return self.override(**suited | values)

    def override_texts(self, settings: Mapping[str, str]) -> CduConfig:
        """Return a copy with parameters replaced by texts, as given on a command line (``modes=sfpr,brc``)."""
        return self.override(**{name: value_of(name, text, getattr(type(self), name, None)) for name, text in settings.items()})


def _precision(name: Any) -> dict[str, int]:
    """Return the parameters that a named precision sets."""
    if not isinstance(name, str) or name not in PRECISIONS:
        raise ConfigError(f"precision = {written(name)} is not allowed: use {', '.join(PRECISIONS)}")
    return PRECISIONS[name]._asdict()


#: Named configurations: one CDU; the four of JPEG-ACT; eight (both move whole 128-byte packets); one CDU with every mode that
#: CDUs have, and bypass.
CONFIGS: Mapping[str, CduConfig] = {
    config.name: config
    for config in (
        CduConfig("tiny"),
        CduConfig("paper", cdus=4, packed_port_bits=1024),
        CduConfig("wide", cdus=8, packed_port_bits=1024),
        CduConfig("universal", modes=tuple(mode.label for mode in Mode if mode is not Mode.MX)),
    )
}
