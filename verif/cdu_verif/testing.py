"""Conformance of blocks of other authors: :func:`check_block` holds a component to the cases of a block."""

from cdu_verif.benches.in_amaranth import check_block

__all__ = ["check_block"]
