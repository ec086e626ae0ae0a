"""The entropy-coded segments of grayscale JPEGs to samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdu.unit.jpeg_encoder import ROWS_IN_TRANSFORM
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.blocks.jpeg_encoder import FIRST_OUTPUT
from cdu_verif.cases.parameters import PIPELINED, PRECISE, PRECISIONS
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.properties import StreamFacts, probed
from cdu_verif.formal.queues import queue_counters, queue_probes
from cdu_verif.formal.stream_rules import stream_harness

if TYPE_CHECKING:
    from cdu_verif.cases.case import Cases


def _cases() -> Cases:
    from cdu_verif.cases.jpeg_scans import JPEG_DECODER

    return JPEG_DECODER


def _with_queue(config: CduConfig) -> BoundDevice:
    return probed("jpeg_decoder", config, queue_probes("marks.queue", ROWS_IN_TRANSFORM))


def _rules(device: BoundDevice) -> str:
    """The stream rules, with what the counters of the queue of marks mean."""
    return stream_harness(device, body=queue_counters("marks.queue", ROWS_IN_TRANSFORM))


RECORD = Record(
    cases=_cases,
    quick=[PRECISE, PIPELINED],
    full=PRECISIONS,
    streams=StreamFacts(held=_with_queue, rules=_rules, first_output=FIRST_OUTPUT),
)
