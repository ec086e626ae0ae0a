"""Policies as files: every ready-made policy is read back the same, and every fault is one sentence."""

import json
import warnings

import actcodec
import pytest
import torch
from actcodec.codecs import codec
from actcodec.codecs.actnn.sample_groups import ActnnSampleCodec
from actcodec.study.models import ResNet
from actcodec.training import (
    EXACT,
    POLICY_NAMES,
    AutoPolicy,
    CodecSpec,
    MixedPrecisionPolicy,
    Policy,
    Rule,
    load_policy,
    policy,
    policy_data,
    save_policy,
    uniform_policy,
)
from cdu_tools.errors import UserError
from torch.nn import functional as F

OPTIONS = {
    "jpeg-act": {"dqt": "optH", "S": 1.5},
    "division": {"bits": 4, "range": "channel"},
    "actnn-L1": {"bits": 3, "group": 64},
    "actnn-L3": {"bits": 1.5, "interval": 2},
    "auto": {"ratio": 7.0, "interval": 2, "candidates": ["sfpr", {"codec": "actnn-sample", "options": {"bits": 3}}]},
}
NAMES = [name for name in POLICY_NAMES if name != "actnn-L5" or torch.cuda.is_available()]


def losses_and_codecs(chosen):
    """Three training steps."""
    torch.manual_seed(1)
    model, x, labels = ResNet(1, 10, width=4, stages=1), torch.rand(4, 1, 8, 8), torch.arange(4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        with actcodec.compress_activations(model, chosen) as statistics:
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        found.append((float(loss.detach()), [(r.codec, r.bytes_compressed) for r in statistics.records]))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_ready_made_policy_comes_back_the_same(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = policy(name, **OPTIONS.get(name, {}))
        path = tmp_path / "policy.json"
        save_policy(made, path)
        loaded = policy(str(path))
    assert type(loaded) is type(made)
    assert policy_data(loaded) == policy_data(made)
    assert losses_and_codecs(loaded) == losses_and_codecs(made)


def test_static_policies_are_written_as_rules_and_adapting_ones_by_name():
    data = policy_data(policy("jpeg-act", dqt="optH"))
    assert [rule["codec"] for rule in data["rules"]] == [EXACT, EXACT, "brc", "sfpr+zvc", "jpeg-act", "sfpr"]
    assert data["rules"][4] == {
        "codec": "jpeg-act",
        "options": {"dqt": "optH"},
        "dtypes": ["float32", "bfloat16", "float16"],
    }
    assert policy_data(policy("actnn-L3", bits=1.5)) == {"policy": "actnn-L3", "options": {"bits": 1.5}}
    assert policy_data(uniform_policy(codec("division", bits=4))) == {
        "default": {"codec": "division", "options": {"bits": 4}},
        "rules": [],
    }
    auto = policy("auto", candidates=[CodecSpec("sfpr"), CodecSpec("division", {"bits": 1})])
    assert policy_data(auto)["options"] == {"candidates": [{"codec": "sfpr"}, {"codec": "division", "options": {"bits": 1}}]}


TOML = """
keep_signs = true
default = "sfpr"

[[rules]]
codec = "exact"
consumer = ["loss"]

[[rules]]
codec = "jpeg-act"
options = { dqt = "optH" }
producer = ["conv", "sum"]
module = "layer1.*"
dtypes = ["float32"]
min_rank = 4
"""


def test_toml_says_what_it_means(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    read = load_policy(path)
    assert read.rules == (
        Rule(EXACT, consumer=("loss",)),
        Rule(
            CodecSpec("jpeg-act", {"dqt": "optH"}),
            producer=("conv", "sum"),
            module="layer1.*",
            dtypes=(torch.float32,),
            min_rank=4,
        ),
    )
    assert (read.default, read.keep_signs) == ("sfpr", True)
    (tmp_path / "level.toml").write_text('policy = "actnn-L3"\noptions = { bits = 1.5, interval = 7 }\n')
    level = load_policy(tmp_path / "level.toml")
    assert isinstance(level, MixedPrecisionPolicy)
    assert (level.mean_bits, level.interval) == (1.5, 7)
    (tmp_path / "auto.toml").write_text('policy = "auto"\n[options]\nerror = 0.1\n[[options.candidates]]\ncodec = "sfpr"\n')
    assert isinstance(load_policy(tmp_path / "auto.toml"), AutoPolicy)


def test_a_file_stands_for_a_name(tmp_path):
    path = tmp_path / "mine.json"
    save_policy(policy("sfpr"), path)
    model = torch.nn.Linear(8, 8)
    with actcodec.compress_activations(model, str(path), min_bytes=0) as statistics:
        model(torch.rand(4, 8, requires_grad=True))
    assert [record.codec for record in statistics.records] == ["sfpr"]
    with pytest.raises(UserError, match="has its options in it: leave out S"):
        policy(str(path), S=1.0)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "rules = [", "is not valid TOML"),
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "[1]", "holds no table"),
        ("a.toml", "rule = 1", "a policy has no 'rule': use rules, default, keep_signs"),
        ("a.toml", "rules = 3", "rules = 3"),
        ("a.toml", "rules = [3]", "rule 3 is no table"),
        ("a.toml", "[[rules]]\nproducer = ['conv']", "a table has no codec"),
        ("a.toml", "[[rules]]\ncodec = 'jpeg'", "unknown codec 'jpeg'"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\noptions = {dqt = 'optL'}", "codec 'sfpr' has no option 'dqt'"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\nproducer = 'conv'", "producer = 'conv'"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\nproducer = [1]", "use a list of names"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\nmodules = 'x'", "a rule has no 'modules'"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\ndtypes = ['int8']", "unknown number format 'int8'"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\nmin_rank = true", "min_rank = True"),
        ("a.toml", "default = 3", "codec 3 is neither"),
        ("a.toml", "keep_signs = 1", "keep_signs = 1"),
        ("a.toml", "policy = 'actnn-L9'", "unknown codec 'actnn-L9'"),
        ("a.toml", "policy = 'actnn-L3'\noptions = {dqt = 'optL'}", "has no option 'dqt'"),
        ("a.toml", "policy = 'auto'\nrules = []", "a policy by name has no 'rules'"),
        ("a.toml", "policy = 'auto'\noptions = {candidates = ['jpeg']}", "unknown codec 'jpeg'"),
        ("a.toml", "policy = 'b.toml'", "unknown codec 'b.toml'"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\nconsumer = ['nrom']", "unknown consumer 'nrom': did you mean"),
        ("a.toml", "[[rules]]\ncodec = 'sfpr'\nconsumer = ['']", "unknown consumer ''"),
        ("a.toml", "", "the policy has neither rules nor a default"),
        ("a.toml", "keep_signs = true", "the policy has neither rules nor a default"),
        ("a.json", "{}", "the policy has neither rules nor a default"),
    ],
)
def test_what_is_wrong_is_one_sentence_that_names_the_file(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_policy(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_functions_words_and_what_stands_in_place_of_a_function_are_consumers(tmp_path):
    path = tmp_path / "a.toml"
    for name in ("norm", "layernorm", "sum", "mul", "gelu", "scaleddotproductattention", "recurrent", "unknown", "checkpoint"):
        path.write_text(f"[[rules]]\ncodec = 'sfpr'\nconsumer = ['{name}']")
        assert load_policy(path).rules[0].consumer == (name,)


def test_files_that_are_not_there_or_of_another_kind(tmp_path):
    with pytest.raises(UserError, match="cannot read policy file"):
        load_policy(tmp_path / "none.toml")
    with pytest.raises(UserError, match="ends with neither"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(UserError, match=r"end with \.json"):
        save_policy(policy("sfpr"), tmp_path / "p.toml")


class OwnCodec(ActnnSampleCodec):
    pass


def test_what_no_name_describes_is_not_written(tmp_path):
    mixed = policy("actnn-L3")
    by_hand = MixedPrecisionPolicy(mixed.rules, mixed.codec, 2)
    for made, message in (
        (by_hand, "made by hand"),
        (Policy((Rule(OwnCodec()),)), "type OwnCodec"),
        (Policy((Rule(ActnnSampleCodec(bits=torch.tensor([1, 2]))),)), "type Tensor"),
    ):
        with pytest.raises(UserError, match=message):
            save_policy(made, tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_written_files_are_plain_json(tmp_path):
    save_policy(policy("actnn-L2", bits=3), tmp_path / "p.json")
    data = json.loads((tmp_path / "p.json").read_text())
    assert data["keep_signs"] is True
    assert data["rules"][-1]["codec"] == "actnn-sample"
    assert data["rules"][-1]["options"] == {"bits": 3}
