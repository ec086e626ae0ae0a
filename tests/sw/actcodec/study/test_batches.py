"""Batches of photographs and text."""

import torch
from actcodec.study.data.batches import CLASSES, SHADES, SUBJECTS, VOCABULARY, images, shades, texts


def test_batches_are_real_and_the_same_each_time():
    pictures, _ = images(3, 8, 64)
    assert pictures.shape == (8, 3, 64, 64)
    assert torch.equal(pictures, images(3, 8, 64)[0])
    assert not torch.equal(pictures, images(4, 8, 64)[0])
    assert set(images(0, 200, 64)[1].tolist()) == set(range(CLASSES))
    # Neighbouring pixels of photographs are alike.
    assert torch.corrcoef(torch.stack((pictures[..., 1:].flatten(), pictures[..., :-1].flatten())))[0, 1] > 0.8
    quarters = torch.bincount(shades(pictures)[0].flatten(), minlength=SHADES) / 64**2
    assert ((quarters > 0.2) & (quarters < 0.3)).all()
    letters, subjects = texts(0, 100, 48)
    assert letters.shape == (100, 48)
    assert letters.max() < VOCABULARY
    assert set(subjects.tolist()) == set(range(len(SUBJECTS)))
    assert "the" in bytes(letters.flatten().tolist()).decode()
