"""The Karhunen-Loeve transform against numpy's singular values, and the rank that pays against every other rank."""

import numpy as np
import pytest
import torch
from actcodec.golden.floating.karhunen import EVERY, WEIGHT_OF_CUT, components, rank_that_pays, sampled


def correlated(rows, features, seed, decay=0.7):
    random = torch.Generator().manual_seed(seed)
    deviations = decay ** torch.arange(features)
    turn = torch.linalg.qr(torch.randn(features, features, generator=random))[0]
    return (torch.randn(rows, features, generator=random) * deviations) @ turn


@pytest.mark.parametrize(("rows", "features"), [(300, 1), (300, 5), (300, 24), (24, 24), (23, 24), (5, 24), (1, 24)])
def test_components_are_those_of_a_principal_component_analysis(rows, features):
    sample, count = correlated(rows, features, features, decay=0.9), min(rows, features)
    variances, directions = components(sample)
    _, singular, right = np.linalg.svd(sample.double().numpy(), full_matrices=False)
    np.testing.assert_allclose(variances, singular**2 / len(sample), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.abs(right @ directions.numpy()), np.eye(count), atol=1e-6)
    np.testing.assert_allclose(directions.t() @ directions, np.eye(count), atol=1e-10)


def test_signs_of_directions_do_not_depend_on_signs_of_values():
    sample = correlated(300, 12, 0)
    variances, directions = components(sample)
    for other in (sample, -sample, sample.flip(0)):
        again = components(other)
        torch.testing.assert_close(again[0], variances)
        torch.testing.assert_close(again[1], directions, rtol=1e-6, atol=1e-8)
    assert (directions.gather(0, directions.abs().argmax(0, keepdim=True)) > 0).all()


def test_equal_variances_have_orthogonal_directions_and_the_same_bits_twice():
    sample = torch.cat((torch.eye(8), -torch.eye(8), torch.zeros(4, 8)))
    variances, directions = components(sample)
    assert torch.equal(variances, torch.full((8,), 2 / 20, dtype=torch.float64))
    torch.testing.assert_close(directions @ directions.t(), torch.eye(8, dtype=torch.float64))
    assert torch.equal(components(sample)[1], directions)
    assert components(torch.zeros(5, 4))[0].tolist() == [0, 0, 0, 0]
    few = components(torch.zeros(3, 4))
    assert few[0].tolist() == [0, 0, 0]
    assert few[1].tolist() == [[0, 0, 0]] * 4


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 5000, 20000])
def test_a_sample_has_one_row_of_each_group_and_no_period(rows):
    places = sampled(torch.arange(rows)[:, None])[:, 0]
    assert len(places) == -(-rows // EVERY)
    assert torch.equal(places // EVERY, torch.arange(len(places)))
    for period in (2, 16, 64, 100, 128):
        if rows >= EVERY**2 * period // 4:
            shares = torch.bincount(places % period, minlength=period).double()
            assert shares.min() > 0
            assert shares.max() <= 2 * shares.mean() + 1


@pytest.mark.parametrize("rows", [64, 1000, 30000])
@pytest.mark.parametrize("step", [0.05, 0.4, 3.0])
def test_no_other_rank_costs_less(rows, step):
    """Weigh squared error and bits as a uniform quantiser of narrow steps trades them: one bit quarters the error."""
    variances = 9 * 0.8 ** torch.arange(40, dtype=torch.float64)
    found = rank_that_pays(variances, step, rows, 16 * 40)
    price = np.log(4) * step**2 / 12 / WEIGHT_OF_CUT
    own = rows * (variances - step**2 / 12)
    bits = 16 * 40 + rows * np.log2(1 + 12 * variances.numpy() / step**2) / 2
    gains = np.concatenate(([0], np.cumsum(own.numpy() - price * bits)))
    assert found == int(gains.argmax())


def test_a_transform_pays_for_more_components_the_more_rows_share_it():
    variances = 0.5 ** torch.arange(64, dtype=torch.float64)
    ranks = [rank_that_pays(variances, 0.1, rows, 16 * 64) for rows in (16, 256, 4096, 1 << 20)]
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1] <= int((variances > 0.1**2 / 12).sum())
