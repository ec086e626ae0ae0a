"""Places in a direction of a unit where errors are found, and the jobs that pass them."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.lib import data
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel


class ErrorPlace(NamedTuple):
    """A place that jobs of some ``modes`` leave in the order of their starts.

    ``flags`` are the errors that are found there. They are raised ``latency`` cycles after the word that causes them, and so
    belong to the job that leaves the place that many cycles later.
    """

    modes: tuple[Mode, ...]
    flags: tuple[str, ...]
    latency: int = 0


def places(config: CduConfig, channel: Channel) -> dict[str, ErrorPlace]:
    """Return the places of a direction by name; places that no built mode reaches are left out.

    ``input``: data enter the path, to ``output``, where the result leaves it. ``receiver``, ``crc``: a payload has been
    received and its CRC checked. ``scales``: scales leave :class:`~cdu.values.scale_join.ScaleJoin`, to ``windows``, where
    they enter the path. ``front``: values have been scaled; ``mx``: values of mode mx have left the front end. ``splitter``:
    blocks are found in a payload, to ``heads``, where they enter the back end.
    """
    every = config.built_modes
    scaled = tuple(mode for mode in every if mode.has_scales)
    coded = tuple(mode for mode in every if mode is not Mode.BYPASS)
    blocked = tuple(mode for mode in coded if mode is not Mode.MX)
    found = {
        "scales": ErrorPlace(scaled, ("keep", "bad_scale", "scale_source")),
        "windows": ErrorPlace(scaled, ("scale_surplus", "scale_missing")),
    }
    if channel is Channel.COMPRESS:
        found |= {
            "input": ErrorPlace(every, ("keep", "early_last", "late_last")),
            "front": ErrorPlace(blocked, ("nonfinite",)),
            "mx": ErrorPlace((Mode.MX,) if config.has_mx else (), ("nonfinite",)),
            "output": ErrorPlace(every, (), latency=2),
        }
    else:
        found |= {
            "receiver": ErrorPlace(every, ("keep",)),
            "crc": ErrorPlace(every if config.payload_crc else (), ("bad_crc",), latency=2),
            "input": ErrorPlace(every, ("payload_length",), latency=2),
            "splitter": ErrorPlace(coded, ("early_last", "late_last")),
            "heads": ErrorPlace(blocked if config.has_ranges else (), ("bad_head",), latency=3),
            "output": ErrorPlace(every if config.has_bypass else (), ("early_last", "late_last")),
        }
    return {name: place for name, place in found.items() if place.modes}


#: The place where the bytes of payloads are counted; their sum is valid two cycles later.
PACKED = {Channel.COMPRESS: "output", Channel.DECOMPRESS: "input"}
#: The places that only the path sees. When decompressing, errors of bypass are found at its output.
_INSIDE = {Channel.COMPRESS: ("front", "mx"), Channel.DECOMPRESS: ("splitter", "heads", "output")}


class Findings(data.StructLayout):
    """Events of a cycle at each of the :func:`places`: a job ``ends`` there, and the errors found there."""

    def __init__(self, config: CduConfig, channel: Channel, *, inside: bool = False) -> None:
        """Make the layout of all places, or with ``inside`` of those that only the path sees."""
        super().__init__(
            {
                name: data.StructLayout(dict.fromkeys(("ends", *place.flags), 1))
                for name, place in places(config, channel).items()
                if name in _INSIDE[channel] or not inside
            }
        )
