"""Recording, measuring and fitting; ``cdu fit-levels`` as a user sees it."""

import json

import actcodec
import pytest
import torch
import typer
from actcodec.study import experiment, level_fit
from actcodec.study.data import load
from actcodec.study.recording import RecordingPolicy
from actcodec.training import policy
from cdu_cli import fit_levels
from cdu_spec import dqt
from scipy.fft import dctn
from typer.testing import CliRunner


def test_a_known_relation_is_found():
    random = torch.Generator().manual_seed(0)
    measured = level_fit.Measurements("jpeg-base", (10, 50))
    truth = torch.tensor([[1.5, 0.8, -0.2], [0.4, 0.1, 0.6]], dtype=torch.float64)
    for _ in range(5):
        features = torch.rand(2, 40, dtype=torch.float64, generator=random) * 3
        noise = 0.05 * torch.randn(2, 40, dtype=torch.float64, generator=random)
        measured.features.append(features)
        measured.errors.append((truth[:, :1] + truth[:, 1:] @ features + noise).exp())
    relation = level_fit.fitted(measured)
    assert relation["channels"] == 200
    for level, row, quality in zip(relation["levels"], truth, (10, 50), strict=True):
        assert level["quality"] == quality
        assert level["coefficients"] == pytest.approx(row.tolist(), abs=0.03)
        assert level["deviation"] == pytest.approx(0.05, rel=0.15)
        assert level["least_residual"] < -2 * level["deviation"] < 2 * level["deviation"] < level["greatest_residual"]


def test_measured_errors_against_a_dct_in_floating_point():
    x = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0)).cumsum(3)
    measured = level_fit.Measurements("jpeg-base", (20, 60))
    measured.add(x)
    assert measured.features[0].shape == (2, 3)
    steps = x.abs().amax((0, 2, 3)) / 127
    samples = (x / steps[:, None, None]).round().numpy()
    for quality, errors in zip((20, 60), measured.errors[0], strict=True):
        table = torch.tensor(dqt.image_table(quality), dtype=torch.float64).view(8, 8).numpy()
        squares = torch.zeros(3, dtype=torch.float64)
        for channel in range(3):
            for n in range(4):
                blocks = samples[n, channel].reshape(2, 8, 2, 8).transpose(0, 2, 1, 3)
                coefficients = dctn(blocks, axes=(2, 3), norm="ortho")
                rest = coefficients - table * (coefficients / table).round()
                squares[channel] += (rest**2).mean() / 4
        # Rounding of samples, and of the inverse transform's results, comes on top.
        assert torch.allclose(errors, (squares + 2 / 12).sqrt(), rtol=0.05)


def test_channels_without_values_do_not_count():
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    x[:, 1] = 0
    measured = level_fit.Measurements("jpeg-act", (50,))
    measured.add(x)
    assert measured.errors[0].shape == (1, 2)
    measured.add(0 * x)
    assert len(measured.errors) == len(measured.features) == 1


def test_tables_of_jpeg_act_do_not_overflow():
    qualities = level_fit.usable_qualities("jpeg-act")
    tables = [dqt.shifts(f"image{quality}") for quality in qualities]
    assert len(set(tables)) == len(tables) > 20
    ones = torch.full((8, 8, 8, 8), 1.0) * torch.arange(1, 9)[:, None, None]
    for quality in (qualities[0], qualities[-1]):
        y = actcodec.codec("jpeg-act", dqt=f"image{quality}", S=level_fit.FITTED_S).compress(ones).decompress()
        # The greatest DC coefficient there is; a step of SFPR is 1/127 of each channel.
        assert ((y - ones).abs() <= ones * (dqt.image_table(quality)[0] / 8 + 1) / 127).all()


def test_recording_shows_what_is_saved_and_changes_nothing():
    images, recipe = load("digits", limit=256), experiment.Recipe(width=8, steps=3)
    shown = []
    recorder = RecordingPolicy({0, 2}, lambda tensor, x: shown.append((tensor, x.clone())))
    recorded = experiment.train(recipe, images, "none", recorder, 1)
    plain = experiment.train(recipe, images, "none", policy("none"), 1)
    assert recorded.losses == plain.losses
    assert len(shown) % 2 == 0
    first, second = shown[: len(shown) // 2], shown[len(shown) // 2 :]
    assert [tensor for tensor, _ in first] == [tensor for tensor, _ in second]
    assert first[0][0].producer == "input"
    # The same seed gives the same first batch, which is the first thing that the network saves.
    order = torch.randperm(len(images.train_inputs), generator=torch.Generator().manual_seed(1))
    assert torch.equal(first[0][1], images.train_inputs[order[: recipe.batch]])
    assert {tensor.consumer for tensor, _ in first} >= {"conv", "norm", "linear"}
    assert not any(tensor.consumer == "loss" or tensor.producer == tensor.consumer == "relu" for tensor, _ in first)
    shown.clear()
    experiment.train(recipe, images, "none", recorder, 1)
    assert len(shown) == len(first) + len(second)


def run(*arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    fit_levels.register(app)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_command_writes_levels_that_the_codec_takes(tmp_path):
    result = run("--steps", 1, "--width", 8, "--limit", 128, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    table = json.loads((tmp_path / "out" / "levels.json").read_text())
    assert table["source"]["steps"] == [0]
    assert table["source"]["tensors"] > 2
    assert (tmp_path / "out" / "levels.png").read_bytes()[:4] == b"\x89PNG"
    x = torch.randn(4, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    codec = actcodec.codec("acgc-jpeg", levels=str(tmp_path / "out" / "levels.json"))
    assert codec.predicted(x).shape == (len(table["coders"]["jpeg-base"]["levels"]), 4)
    assert "jpeg-act: 37 levels" in result.output


def test_command_refuses_images_without_classes(tmp_path):
    result = run("--dataset", "photos", "-o", tmp_path)
    assert "use vdsr" in str(result.exception)
