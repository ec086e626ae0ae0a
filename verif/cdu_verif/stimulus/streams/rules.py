"""The rules of docs/reference/bitstream.md, sections 1 to 7, each with streams that keep it and streams that break it alone."""

from __future__ import annotations

from collections.abc import Iterator

from cdu_verif.stimulus.streams import header_rules, payload_rules
from cdu_verif.stimulus.streams.rule import StreamRule


def rules() -> Iterator[StreamRule]:
    """All rules, in the order of the page."""
    yield from header_rules.rules()
    yield from payload_rules.rules()
