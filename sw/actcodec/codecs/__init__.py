"""Codecs of the papers over the golden model or any other backend.

``codec("jpeg-act").compress(x)`` returns a :class:`Compressed`; :func:`decompress` reconstructs the tensor.
"""

from actcodec.backends.backend import Backend, MismatchError
from actcodec.backends.job import (
    Job,
    beats_in,
    compression_job,
    decompression_job,
    group_scales,
    payload_shifts,
    tensor_from_beats,
)
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec
from actcodec.codecs.catalog import CODEC_NAMES, codec, codec_options
from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed, Packed, RawCopy, decompress, from_bytes
from actcodec.codecs.jpeg.jpeg_base_compressed import JpegBaseCompressed

__all__ = [
    "CODEC_NAMES",
    "Backend",
    "Codec",
    "Compressed",
    "ErrorBoundedCodec",
    "Job",
    "JpegBaseCompressed",
    "MismatchError",
    "Packed",
    "RawCopy",
    "TorchBackend",
    "beats_in",
    "codec",
    "codec_options",
    "compression_job",
    "decompress",
    "decompression_job",
    "from_bytes",
    "group_scales",
    "payload_shifts",
    "tensor_from_beats",
]
