"""Known errors of a block and their source, for the comparison with other designs."""

from __future__ import annotations

from cdu_spec.config import CduConfig

_LOSSLESS = ("zvc_encoder", "zvc_decoder")
_FORWARD, _INVERSE = ("dct", "two_way_dct"), ("idct", "two_way_dct")


def block_accuracy(block: str, config: CduConfig) -> tuple[str, str]:
    """Return the errors of a block, for transforms measured now, and the method; empty texts for other blocks."""
    if block in _LOSSLESS:
        return "lossless", "docs/reference/bitstream.md"
    if block not in (*_FORWARD, *_INVERSE):
        return "", ""
    # These need SciPy, which other blocks do not.
    from cdu_verif.stimulus import dct_accuracy
    from cdu_verif.stimulus.ieee1180 import Errors

    texts = []
    if block in _FORWARD:
        forward = dct_accuracy.forward_errors(config.const_bits, config.pass1_bits)
        texts.append(f"forward: error up to {forward.peak:.2f}, mean square {forward.mean_square:.4f}")
    if block in _INVERSE:
        worst = Errors.worst(dct_accuracy.inverse_errors(config.const_bits, config.pass1_bits))
        verdict = "passed" if worst.passed else "failed"
        texts.append(f"IEEE 1180 {verdict}: error up to {worst.peak:.0f}, mean square {worst.mean_square:.4f}")
    return "; ".join(texts), "measured in this run on the golden model, whose integers the hardware gives"
