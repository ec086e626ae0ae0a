"""One network trained by one means in a process of its own, which takes a step whenever it is told to."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from actcodec.saved.allocations import allocations
from actcodec.saved.peak_memory import PeakMemory
from compiled_means import Means
from compiled_networks import NETWORKS
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

#: glibc's parameters of ``mallopt``, and the bytes from which a freed block goes back to the system at once.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _SMALLEST = -1, -3, 1 << 16


@dataclass(frozen=True)
class Seconds:
    """Time of a call: by the clock, and of the processor with that of the compilers it started."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Memory:
    """Bytes of one step beyond those in use before, and its results."""

    peak: int  #: tensors at the worst moment, by the allocator's events
    kept: int  #: tensors between forward and backward
    resident: int | None  #: resident set at its highest
    parameters: int  #: bytes of the model's parameters, equal to those of its gradients
    loss: str  #: hexadecimal, all bits of it
    gradient: NDArray[np.float32]  #: gradient of all parameters


class Step:
    """A network and a means, ready for its first step. Gradients are tensors of zeros before every step."""

    def __init__(self, network: str, means: Means, autocast: bool) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self._network, self._means, self._autocast = NETWORKS[network], means, autocast
        self._model, (self._inputs, self._targets) = self._network.build(), self._network.batch()
        for parameter in self._model.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def first(self) -> Seconds:
        """Prepare the model and take the first step, in which it may be compiled; the compiler is loaded and tried before."""
        if self._means.compiles:
            torch.autograd.backward(torch.compile(_tried)(torch.ones(8, requires_grad=True)))
        begin = self._clocks()
        self._means.prepare(self._model, self._network, self._step)
        with self._means.compiling():
            self._step()
        return self._since(begin)

    def time(self) -> Seconds:
        """Take a step."""
        self._clear()
        begin = self._clocks()
        self._step()
        return self._since(begin)

    def memory(self) -> Memory:
        """Take three steps: under the eyes of the operating system, then of the allocator, of the forward pass and of all."""
        self._clear()
        _give_freed_blocks_back()
        resident = PeakMemory(self._inputs.device)
        self._step()
        highest = resident.bytes
        kept = allocations(self._forward).kept
        self._clear()
        found = allocations(self._step)
        parameters = list(self._model.parameters())
        gradient = torch.cat([x.grad.flatten() for x in parameters if x.grad is not None]).numpy()
        return Memory(found.peak, kept, highest, sum(x.nbytes for x in parameters), found.result, gradient)

    def _forward(self) -> Tensor:
        autocast = torch.autocast("cpu", torch.bfloat16) if self._autocast else nullcontext()
        with self._means.hooks(self._model, self._network), autocast:
            return functional.cross_entropy(self._model(self._inputs), self._targets)

    def _step(self) -> str:
        loss = self._forward()
        torch.autograd.backward(loss)
        return float(loss.item()).hex()

    def _clear(self) -> None:
        for parameter in self._model.parameters():
            assert parameter.grad is not None
            parameter.grad.zero_()

    @staticmethod
    def _clocks() -> tuple[float, float]:
        compilers = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + compilers.ru_utime + compilers.ru_stime

    def _since(self, begin: tuple[float, float]) -> Seconds:
        wall, cpu = self._clocks()
        return Seconds(wall - begin[0], cpu - begin[1])


class Worker:
    """A process with a :class:`Step`, an empty cache of compiled code, and one thread."""

    def __init__(self, network: str, means: Means, autocast: bool) -> None:
        self._folder = tempfile.TemporaryDirectory()
        os.environ |= {
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": self._folder.name,
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, network, means, autocast), daemon=True)
        self._process.start()
        other.close()

    def call(self, method: str) -> Any:
        """Call a method of the step and return its result. RuntimeError with the text of whatever error it raises."""
        self._connection.send(method)
        try:
            succeeded, result = self._connection.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"the process ended with code {self._process.exitcode}") from None
        if not succeeded:
            raise RuntimeError(result)
        return result

    def close(self) -> None:
        """End the process and remove its cache."""
        self._connection.close()
        self._process.join()
        self._folder.cleanup()


def _serve(connection: Connection, network: str, means: Means, autocast: bool) -> None:
    """Answer the calls of a worker until it hangs up."""
    step: Step | None = None
    while True:
        try:
            method = connection.recv()
        except EOFError:
            return
        try:
            step = step or Step(network, means, autocast)
            answer = True, getattr(step, method)()
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        connection.send(answer)


def _tried(x: Tensor) -> Tensor:
    return x.sin().sum()


def _give_freed_blocks_back() -> None:
    """Tell glibc to give freed blocks back to the system, so that the resident set follows the tensors."""
    library = ctypes.CDLL(None)
    for parameter in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
        library.mallopt(parameter, _SMALLEST)
    library.malloc_trim(0)
