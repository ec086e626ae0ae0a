"""Cases of the block benches: one module per block, expected values from the golden functions only."""

from collections.abc import Mapping

from cdu_verif.cases.affine_dequantizer import AFFINE_DEQUANTIZER
from cdu_verif.cases.alignment_buffer import ALIGNMENT, INVERSE_ALIGNMENT
from cdu_verif.cases.case import Case, Cases
from cdu_verif.cases.dct import DCT, IDCT, TWO_WAY_DCT
from cdu_verif.cases.payload import AFFINE_DECODER, AFFINE_ENCODER, BRC_DECODER, BRC_ENCODER, ZVC_DECODER, ZVC_ENCODER
from cdu_verif.cases.sfpr import INVERSE_SFPR, SFPR
from cdu_verif.cases.shift_quantizer import INVERSE_SHIFT_QUANTIZER, SHIFT_QUANTIZER

__all__ = ["CASES", "Case", "Cases"]

#: Cases by block name.
CASES: Mapping[str, Cases] = {
    "sfpr": SFPR,
    "inverse_sfpr": INVERSE_SFPR,
    "alignment_buffer": ALIGNMENT,
    "inverse_alignment_buffer": INVERSE_ALIGNMENT,
    "affine_dequantizer": AFFINE_DEQUANTIZER,
    "affine_encoder": AFFINE_ENCODER,
    "affine_decoder": AFFINE_DECODER,
    "dct": DCT,
    "idct": IDCT,
    "two_way_dct": TWO_WAY_DCT,
    "shift_quantizer": SHIFT_QUANTIZER,
    "inverse_shift_quantizer": INVERSE_SHIFT_QUANTIZER,
    "zvc_encoder": ZVC_ENCODER,
    "zvc_decoder": ZVC_DECODER,
    "brc_encoder": BRC_ENCODER,
    "brc_decoder": BRC_DECODER,
}
