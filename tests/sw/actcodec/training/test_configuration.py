"""One key of a TOML file configures compression; an entry without meaning is refused in one sentence."""

import json

import actcodec
import pytest
import torch
from actcodec.training import configuration
from cdu_tools.errors import UserError
from torch import nn


@pytest.fixture
def model():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.GELU())
    return nn.Sequential(body, nn.Flatten(), nn.Linear(8 * 256, 4))


@pytest.fixture
def file(tmp_path):
    def written(text, name="train.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def rows(model, compression):
    with compression as stats:
        loss = model(torch.ones(2, 3, 16, 16)).sum()
    loss.backward()
    return stats.tensors


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('compression = "sfpr"', {"codec": "sfpr"}),
        ("[compression]", {"codec": "jpeg-gmc"}),
        (
            '[compression]\npolicy = "jpeg-act"\noptions = { dqt = "optH", S = 1.0 }\nexclude = ["2"]\nmin_bytes = 4096\n',
            {"codec": "jpeg-act", "dqt": "optH", "S": 1.0, "exclude": ["2"], "min_bytes": 4096},
        ),
        ('[compression]\npolicy = "actnn-L2"\nkeep_signs = false', {"codec": "actnn-L2", "keep_signs": False}),
        (
            'lr = 1\n[compression]\npolicy = "sfpr"\nkeep_signs = true\nonly = "0"\ncheckpoints = true\nnonfinite = "raise"',
            {"codec": "sfpr", "keep_signs": True, "only": "0", "checkpoints": True, "nonfinite": "raise"},
        ),
        (
            "[compression]\nmeasure_peak = true\nmeasure_error = true",
            {"codec": "jpeg-gmc", "measure_peak": True, "measure_error": True},
        ),
    ],
)
def test_a_file_stands_for_arguments(file, model, text, arguments):
    path = file(text)
    assert configuration(path) == arguments
    by_hand = actcodec.compress_activations(model, **arguments)
    assert rows(model, actcodec.from_toml(model, path)) == rows(model, by_hand)


def test_rules_and_policy_files(file, model):
    rule = '[[compression.rules]]\ncodec = "sfpr"\nproducer = ["conv"]\n'
    (row,) = [row for row in rows(model, actcodec.from_toml(model, file(rule))) if row["codec"] == "sfpr"]
    assert row["name"] == "0.3"
    file('[[rules]]\ncodec = "sfpr+zvc"\nproducer = ["conv"]\n', "mine.toml")
    beside = file('[compression]\npolicy = "mine.toml"\nexclude = "2"\n')
    assert "sfpr+zvc" in {row["codec"] for row in rows(model, actcodec.from_toml(model, beside))}


def test_json_and_another_key(file, model):
    path = file(json.dumps({"tool": {"policy": "brc"}}), "train.json")
    assert configuration(path, key="tool") == {"codec": "brc"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"train.toml has no key 'compression': write \[compression\] and below it policy = \"jpeg-gmc\""),
        (
            '[compression]\npolcy = "sfpr"',
            r"train.toml: the table has no 'polcy': use policy, options, keep_signs, only",
        ),
        ('[compression]\npolicy = "sfpr"\n[compression.options]\nbitz = 1', r"policy 'sfpr' has no 'bitz': use S, scale_bits,"),
        ('[compression]\npolicy = "spfr"', r"compression in .*train.toml: unknown codec 'spfr': use jpeg-act, jpeg-gmc"),
        ("[compression]\npolicy = 3", r"policy = 3 in a policy is not allowed: use a str"),
        ("compression = 3", r"3 is neither a table nor the name of a policy"),
        ('[compression]\ncheckpoints = "yes"', r"checkpoints = 'yes' in a policy is not allowed: use a bool"),
        ('[compression]\nrules = []\npolicy = "sfpr"', r"the table has no 'rules': use policy, options, keep_signs"),
        (
            '[compression]\npolicy = "mine.toml"\noptions = { S = 1 }',
            r"file, which has its options in it, has no 'opt",
        ),
        ("[compression\n", r"file .*train.toml is not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(file, text, message):
    with pytest.raises(UserError, match=message):
        configuration(file(text))


def test_limits_are_checked_where_they_are_used(file, model):
    with pytest.raises(UserError, match="min_bytes = -1 is not allowed"):
        actcodec.from_toml(model, file("[compression]\nmin_bytes = -1"))
    with pytest.raises(UserError, match=r"cannot read file .*gone\.toml"):
        actcodec.from_toml(model, "gone.toml")
