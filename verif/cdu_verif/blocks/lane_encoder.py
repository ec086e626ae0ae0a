"""The encoders of a lane, of which each block takes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu.delivery.blocks import with_gmc
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import EVERY
from cdu_verif.formal import coding, promises
from cdu_verif.formal.proof import Property

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.lanes import LANE_ENCODER

    return LANE_ENCODER


def _properties(config: CduConfig) -> list[Property]:
    return [coding.encoder_content(config, "lane_encoder", with_gmc)] if Mode.BRC in config.built_modes else []


RECORD = Record(
    cases=_cases,
    quick=[{}, {"cdus": 4, **EVERY}],
    full=[{"modes": ("jpeg-act",)}, {"cdus": 8, **EVERY}],
    properties=_properties,
    promised=promises.tags(with_gmc),
)
