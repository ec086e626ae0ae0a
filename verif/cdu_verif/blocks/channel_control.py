"""The control of one direction."""

from __future__ import annotations

from functools import partial

from cdu.control.channel_control import ChannelControl
from cdu_spec.config import CduConfig
from cdu_spec.register_types import Channel

from cdu_verif.blocks import Record
from cdu_verif.formal import device, watchdog
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import INDUCTION, Sby


def _probed(config: CduConfig, channel: Channel) -> BoundDevice:
    control = device.of_component(ChannelControl(config, channel), "channel_control", config)
    return control.probed(watchdog.PROBES)


def _properties(config: CduConfig) -> list[Property]:
    return [
        Property(
            f"channel_control[{channel.value}]",
            "watchdog",
            f"A job in which nothing moves for WATCHDOG + {watchdog.DELAY} cycles is aborted, whatever the data path does.",
            partial(_probed, config, channel),
            Sby(INDUCTION, 5, watchdog.watchdog_harness),
        )
        for channel in Channel
    ]


RECORD = Record(benches=(), streams=None, properties=_properties)
