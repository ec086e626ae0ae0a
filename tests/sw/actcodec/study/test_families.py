"""Rows of the table of families: gradients before and after training, beside those that torch finds."""

import actcodec
import pytest
import torch
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import GOOD
from actcodec.study.families import BITS, Row, on_family, rows_of
from actcodec.study.likeness import Likeness
from actcodec.study.zoo import Foreign
from torch import nn
from torch.nn import functional as F

X = torch.randn(6, 8, 32, generator=torch.Generator().manual_seed(0))


def build():
    return nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 4))


def loss(model, number):
    return F.cross_entropy(model(X[number]), torch.arange(8) % 4)


TOY = Foreign("toy.model", "CNN", build, loss)


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


def row(cosine, later, ratio):
    first, second = (Likeness(one, 1.0, "", one) for one in (cosine, later))
    return Row("CNN", f"model {ratio}", "sfpr", first, second, ratio, ratio)


def test_a_family_has_the_lowest_cosine_and_the_mean_ratio():
    found = on_family([row(0.999, 0.995, 2.0), row(0.991, 0.999, 8.0)])
    assert (found.cosine, found.hardest, found.models) == (0.991, "model 8.0", 2)
    assert found.ratio == pytest.approx(4)
    assert found.good
    assert not on_family([row(0.999, GOOD - 1e-6, 2.0)]).good
