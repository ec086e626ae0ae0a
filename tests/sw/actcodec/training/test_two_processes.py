"""S28: two processes over gloo train as one does."""

import gloo_worker
import pytest
import torch


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each process found, by the wrapper's name."""
    path = tmp_path_factory.mktemp("processes")
    arguments = (str(path / "rendezvous"), str(path / "results"))
    torch.multiprocessing.spawn(gloo_worker.run, arguments, nprocs=gloo_worker.WORLD)
    return [torch.load(path / f"results.{rank}") for rank in range(gloo_worker.WORLD)]


@pytest.mark.parametrize("wrapper", ["ddp", "fully_shard"])
def test_s28_two_processes_find_the_gradients_of_one(found, wrapper):
    """Both find the mean over the whole batch; the codec rounds a sample the same way wherever it is."""
    want, shapes = gloo_worker.step(gloo_worker.network(), gloo_worker.batch())
    for by_wrapper in found:
        gradients, halves = by_wrapper[wrapper]
        assert gradients.keys() == want.keys()
        for name, gradient in want.items():
            torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-6)
        # The same activations of half the samples, and no parameter among them.
        assert halves == [(shape[0] // 2, *shape[1:]) for shape in shapes]
