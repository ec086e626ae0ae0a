"""Selection of the streams that go through a unit: those that it was built for, all or a few of each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from cdu_spec.config import CduConfig

from cdu_verif.stimulus.streams import jpeg_base
from cdu_verif.stimulus.streams.ignored import ignored
from cdu_verif.stimulus.streams.rule import Refuses
from cdu_verif.stimulus.streams.rules import rules

#: Offsets of fields of the header.
_MODE, _FORM, _CONST_BITS, _PASS1_BITS, _BITS, _STEP = 5, 6, 8, 9, 10, 11


def accepted(config: CduConfig, *, every: bool) -> dict[str, bytes]:
    """Return streams that a unit of this configuration decodes: all of each rule or, unless ``every``, one of each kind."""
    found: dict[str, bytes] = {}
    for rule in rules():
        found |= _some(rule.name, rule.good.items(), config, None if every else 1)
    for one in ignored():
        pairs = chain.from_iterable(((label, a), (f"{label}, otherwise", b)) for label, (a, b) in one.pairs.items())
        found |= _some(one.name, pairs, config, None if every else 2)
    # Many rules are illustrated by the same streams.
    labels = {stream: label for label, stream in found.items()}
    return {label: stream for stream, label in labels.items()}


def refused(config: CduConfig, *, every: bool) -> dict[str, tuple[Refuses, bytes]]:
    """Return streams that must be refused, and by whom; of those refused by a unit's decoder all, or three of each kind."""
    found: dict[str, tuple[Refuses, bytes]] = {}
    for rule in (*rules(), *jpeg_base.rules()):
        streams = dict(rule.bad)
        if rule.by is not Refuses.READER and rule.section != 8:
            streams = _some(rule.name, rule.bad.items(), config, 3 if rule.by is Refuses.UNIT and not every else None)
        found |= {f"{rule.name}: {label}": (rule.by, stream) for label, stream in streams.items()}
    return found


def _some(name: str, streams: Iterable[tuple[str, bytes]], config: CduConfig, most: int | None) -> dict[str, bytes]:
    """Return the streams that the unit was built for; of each mode and quantiser at most ``most``, spread out."""
    kinds: defaultdict[tuple[int, ...], list[tuple[str, bytes]]] = defaultdict(list)
    for label, stream in streams:
        if _suits(stream, config):
            kinds[stream[_MODE], stream[_BITS], stream[_STEP] & 0x80].append((f"{name}: {label}", stream))
    return dict(chain.from_iterable(kind[:: max(1, len(kind) // most) if most else 1][:most] for kind in kinds.values()))


def _suits(stream: bytes, config: CduConfig) -> bool:
    """Return whether a unit was built for the job of a stream."""
    precision = (stream[_CONST_BITS], stream[_PASS1_BITS])
    built = stream[_MODE] in map(int, config.built_modes) and stream[_FORM] == int(config.dtype)
    return built and precision in ((0, 0), (config.const_bits, config.pass1_bits))
