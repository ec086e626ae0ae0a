"""Conformance suite: what every codec of the package keeps, for codecs of other authors too."""

from actcodec.testing.suite import check_codec

__all__ = ["check_codec"]
