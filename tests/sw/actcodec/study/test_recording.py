"""Recorded activations are those of the network, and recording changes nothing."""

import numpy as np
import pytest
import torch
from actcodec.study import data, experiment
from actcodec.study.activations import Activation, DenseActivations, load_activations, record_training, save_activations
from actcodec.study.recording import RecordingPolicy
from actcodec.training import compress_activations, policy
from cdu_tools.errors import UserError

RECIPE = experiment.Recipe(width=8, epochs=2, batch=32)


@pytest.fixture(scope="module")
def digits():
    return data.load("digits", limit=96)


def test_one_step_records_what_convolutions_see_and_make(digits):
    torch.manual_seed(0)
    model = experiment.build_model(RECIPE, digits)
    seen = {}
    convolution = model.blocks[0].conv1
    convolution.register_forward_hook(lambda module, inputs, output: seen.update(made=output.detach().clone()))
    model.stem.register_forward_hook(lambda module, inputs, output: seen.update(image=inputs[0].detach().clone()))
    dense = DenseActivations()
    recording = RecordingPolicy({0}, dense)
    recording.set_samples(None)
    with compress_activations(model, recording):
        model(digits.train_inputs[:32]).sum()
    found = {one.name: one.values for one in dense.found}
    assert torch.equal(found["0/stem/input"], seen["image"])
    assert torch.equal(found["0/blocks.0.bn1/conv"], seen["made"])
    with compress_activations(model, policy("jpeg-act")) as coded:
        model(digits.train_inputs[:32]).sum()
    wanted = [record for record in coded.records if record.codec == "jpeg-act"]
    assert [record.shape for record in wanted] == [tuple(one.values.shape) for one in dense.found]


def test_training_is_that_without_compression_and_first_steps_are_recorded(digits):
    dense, steps = DenseActivations(), []
    run = experiment.train(RECIPE, digits, "recorded", RecordingPolicy({0, 3}, dense), 3)
    plain = experiment.train(RECIPE, digits, "none", policy("none"), 3)
    assert run.losses == plain.losses
    found = record_training(RECIPE, digits, 3, lambda: steps.append(1))
    assert len(steps) == 6  # two epochs of three batches
    assert [one.name.split("/")[0] for one in found] == ["0"] * 7 + ["1"] * 7
    assert [one.name.split("/")[1:] for one in found[:7]] == [one.name.split("/")[1:] for one in dense.found[7:]]
    assert all(torch.equal(a.values, b.values) for a, b in zip(found, dense.found, strict=True))


def test_files_of_activations(tmp_path):
    made = [Activation("0/a/conv", torch.randn(2, 3, 8, 9)), Activation("b", torch.randn(1, 1, 8, 8).bfloat16())]
    save_activations(tmp_path / "a.npz", made)
    found = load_activations(tmp_path / "a.npz")
    assert [one.name for one in found] == ["0/a/conv", "b"]
    assert torch.equal(found[0].values, made[0].values)
    assert torch.equal(found[1].values, made[1].values.float())


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "holds no array"),
        ({"x": np.zeros((8, 8), np.float32)}, "array 'x' of .* use float32 or float16"),
        ({"x": np.zeros((1, 1, 8, 8))}, "float64"),
        ({"x": np.zeros((1, 1, 8, 7), np.float32)}, "W >= 8"),
        ({"x": np.array([None])}, "cannot read"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message):
        load_activations(tmp_path / "a.npz")


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "one.npy", np.zeros(3))
    for name in ("text.npz", "one.npy", "missing.npz"):
        with pytest.raises(UserError, match=name):
            load_activations(tmp_path / name)
