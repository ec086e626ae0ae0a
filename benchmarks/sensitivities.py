"""Choose bits for each tensor by four measures of its effect on the gradient, and compare the results.

    python benchmarks/sensitivities.py

The networks are those of benchmarks/token_codecs.py: a vision transformer and a GPT of width 64 and depth 4, trained for 150
steps. Every tensor that autograd keeps in a step is quantised as ActNN does (codec actnn-sample, stochastic rounding). The part
of the squared gradient error that is due to one tensor at 2 bits is estimated by

alone
    the error itself, with that tensor alone in 2 bits, mean of 4 draws;
GACT
    half the squared distance of two gradients that differ in the draw of that tensor alone, all others being in 4 bits: the
    measure of GACT's perturbation (arXiv 2206.11357);
ALAM
    half the squared difference of the norms of the same two gradients: ALAM (ICLR 2024) keeps only the norm of a gradient;
ActNN
    the formula that policy ``auto`` uses (actcodec.policies.budget.sensitivity), from one step.

Bits of 1, 2, 3, 4, 6 or 8 for each tensor follow by the knapsack of policy ``auto`` (actcodec.policies.budget.knapsack), the
squared error going with 1 / (2**bits - 1)**2, so that the mean over all values is 2, 3 or 4. The result is the error of the
gradient with all of them together, root mean square of 4 draws; the first row has one number of bits for all.

Rank correlation is Spearman's, with the first measure. Writes the table between the marks of docs/methods/transformer.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path

from actcodec import codecs
from actcodec.codecs import Codec
from actcodec.policies.auto.policy import AutoPolicy, ItemKey, item_key
from actcodec.policies.budget.knapsack import greedy_choice
from actcodec.policies.policy import CODED_DTYPES, CodecSpec, Policy, Rule, SavedTensor
from actcodec.policies.tables.rules import first_rules
from actcodec.study.diagnosis import Passes, distance, norm_of
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from marked_table import measure
from scipy.stats import spearmanr
from token_codecs import NETWORKS, trained

PAGE, MARKS = Path("docs", "methods", "transformer.md"), Marks("sensitivities")
CODEC = "actnn-sample"
#: Bits of the measured tensor, and of the others for GACT and ALAM.
BITS, OTHERS = 2, 4
CHOICES, MEANS, DRAWS = (1, 2, 3, 4, 6, 8), (2, 3, 4), 4


class Given(Policy):
    """Bits for tensors by what a rule can tell apart, and which draw of theirs; tensors that are not named stay exact."""

    def __init__(self, bits: Mapping[ItemKey, int], draws: Mapping[ItemKey, int]) -> None:
        super().__init__((*first_rules({}), Rule(CodecSpec(CODEC, {"bits": BITS}), dtypes=CODED_DTYPES)), keep_signs=True)
        self._given = {
            key: codecs.codec(CODEC, bits=count, seed=len(bits) * draws.get(key, 0) + place)
            for place, (key, count) in enumerate(bits.items())
        }
        self._exact = codecs.codec("bypass")
        self.values: dict[ItemKey, int] = {}  #: numbers of values of tensors

    def observer(self) -> Given:
        """Implement :class:`Policy`."""
        return self

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""
        key = item_key(tensor)
        self.values[key] = self.values.get(key, 0) + math.prod(tensor.shape)
        return self._given.get(key, self._exact)

    def finished(self, operation: object, result: object) -> None:
        """Implement :class:`Observer`."""


def alone(passes: Passes, keys: list[ItemKey]) -> list[float]:
    """Squared errors with one tensor quantised."""
    exact = passes.gradient()
    return [
        sum(distance(exact, passes.gradient(Given({key: BITS}, {key: draw}))) ** 2 for draw in range(DRAWS)) / DRAWS
        for key in keys
    ]


def perturbed(passes: Passes, keys: list[ItemKey]) -> tuple[list[float], list[float]]:
    """Return the measures of GACT and ALAM from two draws of one tensor."""
    distances, norms = [], []
    for key in keys:
        bits = dict.fromkeys(keys, OTHERS) | {key: BITS}
        one, other = (passes.gradient(Given(bits, {key: draw})) for draw in (1, 2))
        distances.append(distance(one, other) ** 2 / 2)
        norms.append((norm_of(one) - norm_of(other)) ** 2 / 2)
    return distances, norms


def estimated(passes: Passes, keys: list[ItemKey]) -> list[float]:
    """Squared relative errors by the formula of policy auto, of one step."""
    auto = AutoPolicy(ratio=2, candidates=[CodecSpec(CODEC, {"bits": BITS})], interval=1)
    passes.gradient(auto)
    auto.observer()  # decides
    return [auto.estimates[key][0].gradient_error ** 2 for key in keys]


def together(passes: Passes, bits: Mapping[ItemKey, int]) -> float:
    """Relative error of the gradient with these bits."""
    exact = passes.gradient()
    squares = [distance(exact, passes.gradient(Given(bits, dict.fromkeys(bits, draw)))) ** 2 for draw in range(DRAWS)]
    return math.sqrt(sum(squares) / DRAWS) / norm_of(exact)


def allotted(losses: list[float], values: Mapping[ItemKey, int], mean: float) -> dict[ItemKey, int]:
    """Bits for each tensor, so many on average."""
    options = [
        [(float(count * bits), loss * ((2**BITS - 1) / (2**bits - 1)) ** 2) for bits in CHOICES]
        for loss, count in zip(losses, values.values(), strict=True)
    ]
    picked = greedy_choice(options, mean * sum(values.values())).picked
    return {key: CHOICES[place] for key, place in zip(values, picked, strict=True)}


def table() -> Table:
    """A row for each way and network."""
    rows = []
    for name in NETWORKS:
        _, passes = trained(name)
        seen = Given({}, {})
        passes.gradient(seen)
        keys, values = list(seen.values), seen.values
        distances, norms = perturbed(passes, keys)
        ways = {"alone": alone(passes, keys), "GACT": distances, "ALAM": norms, "ActNN": estimated(passes, keys)}
        even = [f"{together(passes, dict.fromkeys(keys, mean)):.3f}" for mean in MEANS]
        rows.append((name, "all alike", "", *even))
        for way, losses in ways.items():
            errors = [f"{together(passes, allotted(losses, values, mean)):.3f}" for mean in MEANS]
            rows.append((name, way, f"{spearmanr(ways['alone'], losses).statistic:.2f}", *errors))
            print(*rows[-1], file=sys.stderr, flush=True)
    return Table(("network", "bits by", "rank correlation", *(f"error at {mean} bits" for mean in MEANS)), rows)


if __name__ == "__main__":
    measure(__doc__.splitlines()[0], table, PAGE, MARKS)
