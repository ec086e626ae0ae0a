"""Networks after some steps of training, and the tensors that they save in the next one, for benchmarks of codecs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import actcodec
import torch
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.models.library import torchvision
from actcodec.study.recording import RecordingPolicy, Sink
from torch import nn

_BATCH, _STEPS = 32, 40
#: Convolutional networks of the project by name, width and depth.
CNNS = (("resnet", 16, 1), ("vgg", 16, 2), ("wide-resnet", 16, 1), ("vdsr", 64, 5))
#: Images of CIFAR-10 that networks train on, and samples that are kept of each tensor.
IMAGES, KEPT = 4000, 8
#: A network, the images that it is trained on, and what trains it.
Training = tuple[nn.Module, Dataset, torch.optim.Optimizer]


def trainings(
    cifar: Dataset, own: Sequence[tuple[str, int, int]], library: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, Training]]:
    """Networks of the project by name, width and depth, and those of torchvision by name and side of their images."""
    for name, width, depth in own:
        images = cifar if experiment.network(name).classifies else load("photos")
        model = experiment.initial_model(experiment.Recipe.usual(name, width=width, depth=depth), images, 0)
        yield name, (model, images, experiment.network(name).optimizer(model, experiment.network(name).learning_rate))
    for name, side in library:
        torch.manual_seed(0)
        model = getattr(torchvision().models, name)(num_classes=cifar.classes)
        whole = nn.Sequential(nn.Upsample((side, side), mode="bilinear"), model)
        yield name, (whole, cifar, torch.optim.SGD(whole.parameters(), 0.05, momentum=0.9))


def record(training: Training, sink: Sink) -> None:
    """Train a network without compression for some steps, and show what it saves of one more step, a batch of 32."""
    model, images, optimizer = training
    torch.manual_seed(0)
    # Neighbours among the photographs' crops are alike.
    batches = torch.split(torch.randperm(len(images.train_inputs)), _BATCH)
    for step in range(_STEPS):
        chosen = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = experiment.loss_of(model.train()(images.train_inputs[chosen]), images.train_targets[chosen], images)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    recording = RecordingPolicy({0}, sink)
    recording.set_samples(None)
    with actcodec.compress_activations(model, recording):
        experiment.loss_of(model(images.train_inputs[batches[0]]), images.train_targets[batches[0]], images)
