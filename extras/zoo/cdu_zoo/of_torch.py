"""Networks of torch's own layers: recurrent ones, an encoder of transformers, and U-Nets, which no library here has."""

from __future__ import annotations

import torch
from actcodec.study.data.batches import SHADES, SUBJECTS, VOCABULARY
from actcodec.study.foreign import Foreign
from torch import Tensor, nn
from torch.nn import functional

from cdu_zoo.losses import of_next_letters, of_pixels, of_subjects

_WIDTH = 64


class Recurrent(nn.Module):
    """Embedding of letters, recurrent layers, and logits of the next letter after each, or of the subject of the text.

    Parameters
    ----------
    layers
        Recurrent layers of width 64, ``batch_first``.
    letters
        True to predict the next letter.
    """

    def __init__(self, layers: nn.RNNBase, letters: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, _WIDTH)
        self.layers = layers
        self.classifier = nn.Linear(_WIDTH * (1 + layers.bidirectional), VOCABULARY if letters else len(SUBJECTS))
        self._letters = letters

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (N, T, letters) or (N, subjects) from int64 (N, T)."""
        found = self.layers(self.embedding(x))[0]
        logits: Tensor = self.classifier(found if self._letters else found.mean(1))
        return logits


class CellByCell(nn.Module):
    """An LSTM cell that is called for each letter, followed by a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, _WIDTH)
        self.cell, self.norm = nn.LSTMCell(_WIDTH, _WIDTH), nn.LayerNorm(_WIDTH)
        self.classifier = nn.Linear(_WIDTH, VOCABULARY)

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (N, T, letters) from int64 (N, T)."""
        state, found = None, []
        for letter in self.embedding(x).unbind(1):
            state = self.cell(letter, state)
            found.append(self.norm(state[0]))
        logits: Tensor = self.classifier(torch.stack(found, 1))
        return logits


class UNet(nn.Module):
    """Three resolutions down and up again, with the maps of the way down beside those of the way up (Ronneberger et al., 2015).

    Parameters
    ----------
    groups
        Groups of group normalisations; 0 selects batch normalisations.
    width
        Channels at the resolution of the image.
    """

    def __init__(self, groups: int = 0, width: int = 16) -> None:
        super().__init__()

        def block(inputs: int, outputs: int) -> nn.Sequential:
            layers: list[nn.Module] = []
            for channels in (inputs, outputs):
                norm = nn.GroupNorm(groups, outputs) if groups else nn.BatchNorm2d(outputs)
                act = nn.SiLU() if groups else nn.ReLU()
                layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), norm, act]
            return nn.Sequential(*layers)

        widths = (width, 2 * width, 4 * width)
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3, *widths), widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.merge = nn.ModuleList(block(2 * w, w) for w in widths[-2::-1])
        self.classifier = nn.Conv2d(width, SHADES, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (N, 4, H, W) from (N, 3, H, W), H and W multiples of 4."""
        seen = []
        for number, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if number else x)
            seen.append(x)
        for up, merge, beside in zip(self.up, self.merge, seen[-2::-1], strict=True):
            x = merge(torch.cat((beside, up(x)), 1))
        logits: Tensor = self.classifier(x)
        return logits


class Encoder(nn.Module):
    """torch's transformer encoder over letters, normalised after each part as published (Vaswani et al., 2017)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, _WIDTH)
        layer = nn.TransformerEncoderLayer(_WIDTH, 4, 2 * _WIDTH, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(_WIDTH, len(SUBJECTS))

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (N, subjects) from int64 (N, T)."""
        logits: Tensor = self.classifier(self.layers(self.embedding(x)).mean(1))
        return logits


MODELS = (
    Foreign("torch.UNet_batch_norm", "U-Net", UNet, of_pixels()),
    Foreign("torch.UNet_group_norm", "U-Net", lambda: UNet(groups=4), of_pixels()),
    Foreign("torch.TransformerEncoder", "GPT/BERT", Encoder, of_subjects()),
    Foreign("torch.LSTM", "RNN", lambda: Recurrent(nn.LSTM(_WIDTH, _WIDTH, 2, batch_first=True), True), of_next_letters()),
    Foreign("torch.GRU", "RNN", lambda: Recurrent(nn.GRU(_WIDTH, _WIDTH, 2, batch_first=True), True), of_next_letters()),
    Foreign(
        "torch.LSTM_two_ways",
        "RNN",
        lambda: Recurrent(nn.LSTM(_WIDTH, _WIDTH, 2, batch_first=True, dropout=0.1, bidirectional=True), False),
        of_subjects(),
    ),
    Foreign("torch.LSTMCell", "RNN", CellByCell, of_next_letters()),
)
