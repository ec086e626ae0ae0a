"""Rows of the table of families: gradients before and after training, beside those that torch finds."""

import actcodec
import pytest
import torch
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import GOOD
from actcodec.study.families import BITS, FamilyRow, on_family, rows_of
from actcodec.study.gradient_similarity import Likeness
from torch.nn import functional as F
from toy_of_the_zoo import TOY, build, loss


def flat(model, found):
    return torch.cat([gradient.flatten() for gradient in torch.autograd.grad(found, list(model.parameters()))]).double()


def test_rows_are_the_gradients_before_and_after_training():
    rows = list(rows_of(TOY, (CodecSpec("none"), CodecSpec("sfpr")), steps=5))
    assert [row.policy for row in rows] == ["none", "sfpr", *BITS]
    assert [rows[0].first.cosine, rows[0].later.cosine] == pytest.approx([1, 1], abs=1e-12)
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    cosines = []
    for steps in (5, 0):
        with actcodec.compress_activations(model, "sfpr") as stats:
            found = loss(model, 0)
        cosines.append(F.cosine_similarity(flat(model, loss(model, 0)), flat(model, found), 0).item())
        for number in range(1, 1 + steps):
            optimizer.zero_grad()
            loss(model, number).backward()
            optimizer.step()
    assert [rows[1].first.cosine, rows[1].later.cosine] == pytest.approx(cosines, abs=1e-9)
    assert (rows[1].ratio, rows[1].ratio_of_everything) == (stats.ratio, stats.ratio_of_everything)


def test_few_bits_do_harm_where_a_normalisation_saves_them():
    few, many = (row for row in rows_of(TOY, (), steps=0) if row.policy in BITS)
    assert (BITS[few.policy], BITS[many.policy]) == ((8, 2), (2, 8))
    assert few.ratio > 0
    assert many.ratio > 0
    assert few.first.cosine != many.first.cosine


def test_seeds_give_other_weights_and_bits_have_one_alone():
    first, again, other = (list(rows_of(TOY, (CodecSpec("sfpr"),), steps=0, seed=seed)) for seed in (0, 0, 1))
    assert first == again
    assert [(row.policy, row.seed) for row in other] == [("sfpr", 1)]
    assert other[0].first.cosine != first[0].first.cosine


def row(cosine, later, ratio, seed=0, model=None):
    first, second = (Likeness(one, 1.0, "", one) for one in (cosine, later))
    return FamilyRow("CNN", model or f"model {ratio}", seed, "sfpr", first, second, ratio, ratio)


def test_a_family_has_the_lowest_cosine_and_the_mean_ratio():
    found = on_family([row(0.999, 0.995, 2.0), row(0.991, 0.999, 8.0)])
    assert (found.cosine, found.hardest, found.models, found.good_models, found.seeds) == (0.991, "model 8.0", 2, 2, 1)
    assert found.ratio == pytest.approx(4)
    assert found.good
    assert not on_family([row(0.999, GOOD - 1e-6, 2.0)]).good


def test_the_lowest_of_all_seeds_counts_and_exceptions_are_named():
    rows = [row(0.999, 0.999, 2.0, seed, f"model {number}") for number in range(20) for seed in range(3)]
    assert on_family(rows).exceptions == {}
    found = on_family([*rows, row(0.999, 0.95, 2.0, 1, "model 7")])
    assert (found.good, found.good_models, found.models, found.seeds) == (True, 19, 20, 3)
    assert (found.cosine, found.hardest, found.exceptions) == (0.95, "model 7", {"model 7": 0.95})
    found = on_family([*rows, row(0.999, 0.95, 2.0, 1, "model 7"), row(0.98, 0.999, 2.0, 0, "model 8")])
    assert (found.good, found.good_models, found.exceptions) == (False, 18, {})
