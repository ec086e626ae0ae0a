"""S28: two processes over gloo train as one does, with the batch, weights or the sequence in parts."""

import gloo_worker
import pytest
import torch


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return the results of each process, by the wrapper's name."""
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


@pytest.mark.parametrize("way", gloo_worker.PARALLEL)
@pytest.mark.parametrize("policy", gloo_worker.POLICIES)
def test_distributed_tensors_are_compressed_by_their_local_part(found, way, policy):
    """The gradient is that of one process within the codec's error, and no DTensor is kept exactly."""
    for by_way in found:
        got, alone = by_way[way, policy], by_way[None, policy]
        exact = by_way[None, "none"]["gradients"]
        assert got["gradients"].keys() == exact.keys()
        for name, gradient in exact.items():
            error = (got["gradients"][name] - gradient).norm() / gradient.norm()
            usual = (alone["gradients"][name] - gradient).norm() / gradient.norm()
            assert error <= 1.5 * usual + 1e-5
        assert not any("DTensor" in kind for kind in got["not_counted"])
        if policy != "none":
            assert all(codec != "exact" for _, codec, _ in got["codecs"])
            alike = by_way[gloo_worker.WIDE_KEPT, policy]
            assert got["ratio_of_everything"] > 0.6 * alike["ratio_of_everything"] > 3
