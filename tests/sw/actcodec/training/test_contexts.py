"""The context itself: repeated and nested entry, decorator, manual switch, and excluded tensors (S37, S39, S40)."""

import copy
import pickle
import threading

import actcodec
import pytest
import torch
from actcodec.training.hooks import NO_TRANSFORMS
from cdu_tools.errors import MissingToolError, UserError
from codecs_for_tests import ExactCodec
from context_steps import LABELS, X, gradient, loss_of, network
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def test_s40_entered_again_and_again_with_statistics_of_its_own():
    model = network()
    context = actcodec.compress_activations(model, "actnn", bits=4)
    found = []
    for _ in range(3):
        with context as stats:
            loss = loss_of(model)
        assert context.statistics is stats
        found.append((stats.bytes_compressed, gradient(model, loss)))
    assert len({kept for kept, _ in found}) == 1
    # One policy for all entries: stochastic rounding goes on, as with a policy object.
    assert not torch.equal(found[0][1], found[1][1])
    policy = actcodec.training.policy("actnn", bits=4)
    for _, expected in found:
        with actcodec.compress_activations(model, policy):
            loss = loss_of(model)
        assert torch.equal(gradient(model, loss), expected)


def test_s40_entered_within_itself():
    model, codec = network(), ExactCodec()
    context = actcodec.compress_activations(model, codec)
    with context as outer:
        first = loss_of(model)
        with context as inner:
            second = loss_of(model)
        assert context.enabled
        third = loss_of(model)
    assert not context.enabled
    assert len(outer.records) == 2 * len(inner.records) - 1 > 0  # both of its steps save the same images
    gradients = [gradient(model, loss) for loss in (first, second, third, loss_of(model))]
    assert all(torch.equal(one, gradients[-1]) for one in gradients)


def test_s40_a_decorator():
    model = network()
    context = actcodec.compress_activations(model, "sfpr")

    @context
    def step(scale):
        assert context.enabled
        return loss_of(model) * scale

    assert step(2.0).item() == pytest.approx(2 * step(1.0).item())
    assert context.statistics.ratio > 2
    with pytest.raises(RuntimeError, match="from the step"):
        context(lambda: (_ for _ in ()).throw(RuntimeError("from the step")).__next__())()
    assert not context.enabled


def test_s40_switched_by_hand_on_each_thread():
    model = network()
    context = actcodec.compress_activations(model, "sfpr")
    with pytest.raises(UserError, match="is not enabled on this thread: enable it first"):
        context.disable()
    stats = context.enable()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(context.enabled))
    thread.start()
    thread.join()
    assert seen == [False]
    loss = loss_of(model)
    context.disable()
    kept = len(stats.records)
    loss_of(model)
    assert len(stats.records) == kept > 0
    assert gradient(model, loss).isfinite().all()


@pytest.mark.parametrize(
    ("options", "compressed"),
    [
        ({}, {"0", "1", "2", "3", "5"}),
        ({"exclude": "5"}, {"0", "1", "2", "3"}),
        ({"exclude": ["5", "0"]}, {"1", "2", "3"}),
        ({"only": ["0", "2"]}, {"0", "2"}),
        ({"only": "*", "exclude": "[13]"}, {"0", "2", "5"}),
    ],
)
def test_modules_are_chosen_by_name(options, compressed):
    model = network()
    with actcodec.compress_activations(model, "sfpr", **options) as stats:
        loss_of(model)
    assert {record.name for record in stats.records if record.codec == "sfpr"} == compressed


def test_a_module_stands_for_what_is_in_it():
    model = nn.ModuleDict({"body": network(), "body2": nn.Linear(8, 8)})
    for name, count in (("body", 0), ("body2", 5), ("body.?", 0), ("body.[01]", 3)):
        with actcodec.compress_activations(model, "sfpr", exclude=name) as stats:
            loss_of(model["body"])
        assert sum(record.codec == "sfpr" for record in stats.records) == count


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"exclude": ["bdy"]},
            r"exclude = 'bdy' is no module of the model: use names as in .*, for instance body",
        ),
        ({"only": ["body", "head.*"]}, r"only = 'head\.\*' is no module of the model"),
        ({"only": [3]}, r"only = \[3\] is not allowed: use names of modules"),
        ({"min_bytes": -1}, "min_bytes = -1 is not allowed: use a whole number, 0 or more"),
        ({"min_bytes": 0.5}, "min_bytes = 0.5 is not allowed"),
        ({"checkpoints": "yes"}, "checkpoints = 'yes' is not allowed: use True or False"),
        ({"compress_loss": 1}, "compress_loss = 1 is not allowed"),
        ({"double_backward": "no"}, "double_backward = 'no' is not allowed"),
        ({"keep_signs": "no"}, "keep_signs = 'no' is not allowed: use True or False"),
        ({"measure_error": "yes"}, "measure_error = 'yes' is not allowed: use True or False"),
        ({"measure_error": None}, "measure_error = None is not allowed"),
        ({"measure_peak": 5}, "measure_peak = 5 is not allowed"),
        ({"codec_factory": "yes"}, "codec_factory = 'yes' is not allowed: use a function"),
    ],
)
def test_what_is_no_choice_is_refused_at_once(options, said):
    with pytest.raises(UserError, match=said):
        actcodec.compress_activations(nn.ModuleDict({"body": network()}), "sfpr", **options)


def test_s39_small_tensors_are_exact():
    model = network()
    sizes = {}
    for least in (None, 0, 3073, 1 << 20):
        codec = ExactCodec()
        given = {} if least is None else {"min_bytes": least}
        with actcodec.compress_activations(model, codec, **given):
            loss_of(model)
            model[5](torch.ones(1, 8 * 64, requires_grad=True)[:, : 8 * 64])
            F.gelu(torch.ones(2, 8, requires_grad=True))
        sizes[least] = sorted(4 * torch.Size(shape).numel() for shape in codec.given)
    assert 64 in sizes[0]
    assert sizes[None] == [size for size in sizes[0] if size >= 256]
    assert sizes[3073] == [size for size in sizes[0] if size > 3072]
    assert sizes[1 << 20] == []


@pytest.mark.parametrize(
    ("which", "options"),
    [("autocusz", {"bound": 1e-300}), (actcodec.codec("cusz", bound=1e-300, mode="abs"), {}), ("jpeg-base", {"min_bytes": 0})],
)
def test_s39_what_a_codec_would_enlarge_is_exact(which, options):
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))
    for rows in (1, 64):
        with actcodec.compress_activations(model, which, **options) as stats:
            model(torch.randn(rows, 16)).sum()
        assert stats.records
        assert all(record.bytes_compressed <= record.bytes_original for record in stats.records)


def test_errors_of_a_codec_name_the_module():
    class Refusing(ExactCodec):
        def compress(self, x):
            raise UserError("no tensor is taken: use another codec")

    model = nn.ModuleDict({"body": nn.Linear(16, 8)})
    with (
        pytest.raises(UserError, match=r"^body: no tensor is taken: use another codec$"),
        actcodec.compress_activations(model, Refusing()),
    ):
        model["body"](torch.randn(64, 16))


@pytest.mark.parametrize(
    "double", [actcodec.codec("sfpr"), actcodec.codec("bypass"), actcodec.codec("jpeg-act"), "file"], ids=str
)
def test_float64_is_exact(double, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("default = 'sfpr'")
    model, x = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8)).double(), torch.randn(64, 16).double()
    expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    with actcodec.compress_activations(model, str(path) if double == "file" else double) as stats:
        loss = model(x).square().sum()
    assert all(map(torch.equal, torch.autograd.grad(loss, list(model.parameters())), expected))
    assert {record.codec for record in stats.records} <= {"exact", "loss"}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("which", ["sfpr", "jpeg-act"])
def test_s37_inputs_of_checkpoints_on_request(reentrant, which):
    """Checkpoints and compression add up: a reconstruction is kept, and all else is computed again from it."""
    model = network()
    parts = (model[:2], model[2:4])

    def step(**options):
        with actcodec.compress_activations(model, which, **options) as stats:
            x = X.clone().requires_grad_()
            for part in parts:
                x = checkpoint(part, x, use_reentrant=reentrant)
            loss = F.cross_entropy(model[4:](x), LABELS)
        loss.backward()
        found = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        model.zero_grad()
        return found, stats

    exact, plain = step()
    assert {record.codec for record in plain.records if "checkpoint" in record.saved_by} == {"exact"}
    got, stats = step(checkpoints=True)
    assert {record.codec for record in stats.records if "checkpoint" in record.saved_by} == {which}
    assert stats.bytes_compressed < 0.6 * plain.bytes_compressed
    reference = gradient(model, loss_of(model))
    assert (exact - reference).norm() < 0.2 * reference.norm()
    assert 0 < (got - exact).norm() < 0.2 * exact.norm()
    again, _ = step(checkpoints=True)
    assert torch.equal(got, again)


@pytest.mark.usefixtures("nothing_is_left")
def test_errors_leave_only_what_they_pass_through():
    model = network()
    outer, inner = (actcodec.compress_activations(model, "sfpr") for _ in range(2))
    with outer as stats:
        with pytest.raises(ZeroDivisionError), inner:
            raise ZeroDivisionError
        assert outer.enabled
        assert not inner.enabled
        loss_of(model)
    assert stats.records


@pytest.mark.usefixtures("nothing_is_left")
def test_disabled_on_another_thread():
    context, said = actcodec.compress_activations(network(), "sfpr"), []

    def disable():
        try:
            context.disable()
        except UserError as error:
            said.append(str(error))

    with context:
        thread = threading.Thread(target=disable)
        thread.start()
        thread.join()
        assert context.enabled
    assert said == ["this compression is not enabled on this thread: enable it first"]


@pytest.mark.usefixtures("nothing_is_left")
def test_transforms_that_allow_no_hooks_are_named():
    model = network()
    context = actcodec.compress_activations(model, "sfpr")

    def within(x):
        with context:
            return model(x).sum()

    for transform in (torch.func.grad, torch.func.jacrev, torch.func.hessian, lambda f: lambda x: torch.func.vjp(f, x)):
        with pytest.raises(UserError) as said:
            transform(within)(X)
        assert str(said.value) == NO_TRANSFORMS
        with pytest.raises(UserError) as said, context:
            transform(lambda x: model(x).sum())(X)
        assert str(said.value) == NO_TRANSFORMS
        assert not context.enabled


def test_generators_and_coroutines_are_not_decorated():
    context = actcodec.compress_activations(network(), "sfpr")

    def generator():
        yield

    async def coroutine():
        pass

    async def both():
        yield

    for function in (generator, coroutine, both):
        with pytest.raises(UserError, match=r"is a generator or a coroutine, .* use a `with` within it"):
            context(function)


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("name", actcodec.training.POLICY_NAMES)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_copies_do_what_the_original_does(name, backend, copied):
    if backend != "torch" and "backend" not in actcodec.training.policy_options(name):
        pytest.skip("has no backends")
    model = network()
    options = {} if backend == "torch" else {"backend": backend}
    try:
        context = actcodec.compress_activations(model, name, measure_peak=True, **options)
    except MissingToolError as error:
        pytest.skip(str(error))
    with context:
        loss_of(model).backward()
        assert not copied(context).enabled
    other = copied(context)
    assert vars(other.statistics) is not vars(context.statistics)
    found = []
    for one in (context, other):
        with one as stats:
            loss = loss_of(one._model)
        found.append((stats.bytes_compressed, gradient(one._model, loss)))
        assert not one.enabled
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])
