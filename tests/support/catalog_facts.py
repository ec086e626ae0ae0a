"""The codecs of the catalogue as subjects of the conformance suite: registering a codec suffices to test it."""

import os
from functools import partial

import actcodec
from actcodec.backends.named import NATIVE, TORCH
from actcodec.codecs import CODEC_NAMES, codec_options
from actcodec.testing.rows import FLOATS
from actcodec.testing.subject import Subject

#: Environment variable with the backend of codecs; only codecs with such a choice are then tested. Default: their own choice.
BACKEND = "CDU_TEST_BACKEND"
_BACKENDS = (os.environ[BACKEND],) if BACKEND in os.environ else (TORCH, NATIVE)
#: Codecs by name.
SUBJECTS = {
    name: Subject(partial(actcodec.codec, name), codec_options(name), _BACKENDS)
    for name in CODEC_NAMES
    if BACKEND not in os.environ or "backend" in codec_options(name)
}
#: Every codec with every width.
VARIANTS = tuple((subject, bits) for subject in SUBJECTS.values() for bits in subject.widths)
VARIANT_IDS = tuple(subject.name if bits is None else f"{subject}-{bits}" for subject, bits in VARIANTS)

__all__ = ["BACKEND", "FLOATS", "SUBJECTS", "VARIANTS", "VARIANT_IDS"]
