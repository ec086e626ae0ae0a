"""A run that is saved and gone on with is the run without a break: every named policy, to the last bit."""

import subprocess
import sys
import warnings

import actcodec
import pytest
import torch
from actcodec.training import POLICY_NAMES, policy, policy_options
from cdu_tools.errors import MissingToolError, UserError
from torch import nn
from torch.nn import functional as F

STEPS, BREAK = 6, 3
#: Learners that learn every second step, so that they have learnt before the break and do so again after it.
CASES = [
    *((name, {"interval": 2} if "interval" in policy_options(name) else {}) for name in POLICY_NAMES),
    ("jpeg-act", {"dqt": "optLH"}),
    ("jpeg-gmc", {"dqt": "optLH"}),
    ("auto", {"interval": 2, "error": 0.2}),
    (
        "auto",
        {
            "interval": 2,
            "candidates": ["actnn-sample", "sfpr", "acgc-quant", {"codec": "actnn-sample", "options": {"bits": 4}}],
        },
    ),
    ("actnn-L3", {"interval": 2, "bits": 1.5, "average": 0.5}),
    ("autoquant", {"interval": 2, "widths": "any"}),
    ("actnn", {"keep_signs": True}),
]


def made(name, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels and baselines that need CUDA warn
        try:
            return policy(name, **options)
        except MissingToolError as error:
            pytest.skip(str(error))


def beginning(chosen):
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 8, 3, padding=1), nn.GELU(), nn.Flatten(), nn.LayerNorm(512), nn.Linear(512, 4)),
    )
    return actcodec.compress_activations(model, chosen), model, torch.optim.Adam(model.parameters(), lr=0.01)


def steps(run, first, end):
    compression, model, optimizer = run
    losses = []
    for number in range(first, end):
        random = torch.Generator().manual_seed(number)
        x, y = torch.randn(8, 3, 16, 16, generator=random), torch.randint(4, (8,), generator=random)
        compression.policy.set_epoch(2 * number)
        compression.policy.set_samples(torch.randint(20, (8,), generator=random))
        torch.manual_seed(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # auto cannot reach its goals here
            with compression as stats:
                loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append((loss.item(), stats.bytes_compressed))
    return losses, [p.detach().clone() for p in model.parameters()]


def save(run, path):
    torch.save([part.state_dict() for part in run], path)


def load(run, path):
    for part, state in zip(run, torch.load(path, weights_only=True), strict=True):
        part.load_state_dict(state)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_going_on_gives_the_same_bits(name, options, tmp_path):
    losses, weights = steps(beginning(made(name, options)), 0, STEPS)
    first = beginning(made(name, options))
    before, _ = steps(first, 0, BREAK)
    save(first, tmp_path / "run.pt")
    steps(first, BREAK, BREAK + 1)  # later steps do not change the saved state
    second = beginning(made(name, options))
    load(second, tmp_path / "run.pt")
    after, found = steps(second, BREAK, STEPS)
    assert before + after == losses
    assert all(torch.equal(a, b) for a, b in zip(found, weights, strict=True))


@pytest.mark.parametrize("name", ["actnn", "division-float", "actnn-L2", "actnn-L3", "autoquant", "auto"])
def test_without_the_state_other_bits_would_follow(name, tmp_path):
    """The comparison of the test above depends on the state: without it other bits follow."""
    options = {"interval": 2} if "interval" in policy_options(name) else {}
    losses, _ = steps(beginning(policy(name, **options)), 0, STEPS)
    first = beginning(policy(name, **options))
    steps(first, 0, BREAK)
    save(first, tmp_path / "run.pt")
    second = beginning(policy(name, **options))
    for part, state in list(zip(second, torch.load(tmp_path / "run.pt", weights_only=True), strict=True))[1:]:
        part.load_state_dict(state)
    after, _ = steps(second, BREAK, STEPS)
    assert after != losses[BREAK:]


@pytest.mark.parametrize("name", ["actnn-L3", pytest.param("autoquantz", marks=pytest.mark.campaign)])
def test_in_another_process(name, tmp_path):
    losses, _ = steps(beginning(policy(name, interval=2)), 0, STEPS)
    first = beginning(policy(name, interval=2))
    steps(first, 0, BREAK)
    save(first, tmp_path / "run.pt")
    program = (
        f"import runpy, torch; torch.set_num_threads({torch.get_num_threads()}); names = runpy.run_path({__file__!r}); "
        f"run = names['beginning'](names['policy']({name!r}, interval=2)); "
        f"names['load'](run, {str(tmp_path / 'run.pt')!r}); print(names['steps'](run, {BREAK}, {STEPS})[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(losses[BREAK:])


def test_saving_changes_nothing():
    for name in ("auto", "actnn-L3"):
        plain, saved = beginning(policy(name, interval=2)), beginning(policy(name, interval=2))
        losses, _ = steps(plain, 0, STEPS)
        found = []
        for number in range(STEPS):
            saved[0].state_dict()
            found += steps(saved, number, number + 1)[0]
        assert found == losses


def test_the_state_of_another_policy_is_refused():
    with pytest.raises(UserError, match=r"with the codecs brc, sfpr\+zvc, jpeg-act, sfpr, this is Policy with brc, actnn: "):
        policy("actnn").load_state_dict(policy("jpeg-act").state_dict())
    with pytest.raises(UserError, match=r"of Policy with the codecs brc, actnn-sample, this is MixedPrecisionPolicy"):
        policy("actnn-L3").load_state_dict(policy("actnn-L2").state_dict())
    with pytest.raises(UserError, match=r"is that of no policy with the codecs none, this is Policy with brc"):
        policy("actnn").load_state_dict({})


@pytest.mark.parametrize("name", ["actnn", "actnn-L3", "autoquant", "auto"])
@pytest.mark.parametrize("state", [[], None, 5, {"kind": "Policy", "codecs": 5}, {"codecs": [5]}, {"codecs": [("brc", 5)]}])
def test_what_is_no_state_is_refused(name, state):
    with pytest.raises(UserError, match=r"load what state_dict\(\) returned"):
        policy(name).load_state_dict(state)


@pytest.mark.parametrize("name", ["actnn-L3", "autoquant", "auto"])
def test_a_state_without_what_was_learnt_is_refused(name):
    whole = policy(name).state_dict()
    with pytest.raises(UserError, match=r"the state has no '\w+': load what state_dict\(\) returned"):
        policy(name).load_state_dict({key: whole[key] for key in ("kind", "codecs")})


def test_a_state_that_is_asked_for_within_a_context_does_no_harm():
    for name in ("auto", "actnn-L3", "autoquant", "jpeg-gmc"):
        compression, model, _ = beginning(made(name, {}))
        with compression:
            loss = model(torch.randn(4, 3, 16, 16)).sum()
            compression.state_dict()
        loss.backward()
