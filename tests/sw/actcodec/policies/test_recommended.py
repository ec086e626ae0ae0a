"""Recommendations follow from measurements, all of which are in the table of the evidence."""

import csv
import re
from math import prod
from pathlib import Path

import pytest
from actcodec.policies import recommended
from actcodec.policies.catalog import POLICY_NAMES, policy
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import ALIKE, GOOD, Measured, OnFamily, good_for, measured, named, status, verdict
from actcodec.study.families import POLICIES
from actcodec.study.foreign import FAMILIES
from cdu_cli.main import app
from typer.testing import CliRunner

EVIDENCE = Path(__file__).parents[4] / "docs" / "evidence"
TABLE = EVIDENCE / "results_families_models.csv"
#: Seeds of weights.
SEEDS = 3


@pytest.fixture(scope="module")
def rows():
    return list(csv.DictReader(TABLE.open(encoding="utf-8")))


def test_every_policy_was_measured_on_every_model(rows):
    assert {one.text for one in measured()} == {named(spec) for spec in POLICIES}
    assert {spec.name for spec in POLICIES} | set(ALIKE) == set(POLICY_NAMES)
    models = {row["model"] for row in rows}
    for one in measured():
        assert sum(found.models for found in one.families.values()) == len(models), one.text


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_what_their_rows_say(rows, family):
    for one in measured():
        its = [row for row in rows if (row["family"], row["policy"]) == (family, one.text)]
        cosines = {row["model"]: min(float(row["cosine"]), float(row["later"])) for row in its}
        found = one.families[family]
        bad = {model: cosine for model, cosine in cosines.items() if cosine < GOOD - 1e-4}
        assert len(its) - found.good_models == pytest.approx(len(bad), abs=sum(abs(c - GOOD) <= 1e-4 for c in cosines.values()))
        assert {row["seeds"] for row in its} == {str(found.seeds)}
        assert not found.good or found.seeds == SEEDS
        assert not found.exceptions or found.exceptions == pytest.approx(
            {model: cosines[model] for model in found.exceptions}, abs=1e-4
        )
        assert found.good_models + len(found.exceptions) == found.models or not found.good
        assert found.cosine == pytest.approx(min(cosines.values()), abs=1e-4)
        assert cosines[found.hardest] == pytest.approx(found.cosine, abs=1e-4)
        assert found.ratio == pytest.approx(
            prod(float(row["of everything"]) for row in its) ** (1 / len(its)), rel=6e-3
        )  # two decimals


def on(ratio, cosine):
    return OnFamily(ratio, cosine, "model", 1, int(cosine >= GOOD), 3)


def some(name, ratio, cosine, **options):
    return Measured(CodecSpec(name, options), {"A": on(ratio, cosine), "B": on(ratio, 0.5)})


def test_the_densest_of_the_good_ones_is_recommended(monkeypatch):
    rows = (
        some("sfpr", 4, GOOD),
        some("sfpr", 5, 1, S=1.0),
        some("jpeg-act", 6, 0.98),
        some("jpeg-act", 4, 1, S=1.0),
        some("gist", 9, 0.995),
        some("division", 13, GOOD - 1e-6),
    )
    monkeypatch.setattr(recommended, "measured", lambda: rows)
    assert recommended.recommended("A").text == "gist"
    assert recommended.recommended("A", recommended.has_kernels).text == "sfpr S=1.0"
    assert recommended.recommended("A", recommended.has_gpu_kernels).text == "sfpr S=1.0"
    assert good_for("sfpr") == good_for("sfpr", options=False) == ("A",)
    assert (good_for("jpeg-act"), good_for("jpeg-act", options=False)) == (("A",), ())
    assert (status("sfpr"), status("division"), status("actnn")) == ("stable", "experimental", "experimental")


def test_every_family_has_a_policy_that_is_there():
    for family in FAMILIES:
        for among in (lambda name: True, recommended.has_kernels, recommended.has_gpu_kernels):
            found = recommended.recommended(family, among)
            assert found.families[family].good
            policy(found.policy.name, **found.policy.options)


@pytest.mark.parametrize("name", ["none", "brc", "cdma", "vdnn", "actnn-L0"])
def test_lossless_policies_are_stable_and_good_for_all(name):
    assert status(name) == "stable"
    assert good_for(name) == tuple(FAMILIES)


def test_experimental_policies_are_noise_on_some_model_of_every_family():
    """But division on ConvNeXt, and mxfp4, which is good for none."""
    found = {name for name in POLICY_NAMES if status(name) == "experimental"}
    assert found >= {"actnn", "actnn-L3", "actnn-L5", "division", "division-channel", "mxfp4"}
    for one in measured():
        if one.policy.name in found:
            verdicts = {family: verdict(its.cosine) for family, its in one.families.items()}
            assert "good" not in verdicts.values(), one.text
            others = {family for family, said in verdicts.items() if said != "noise"}
            assert others <= ({"ConvNeXt"} if one.policy.name == "division" else set()) or one.policy.name == "mxfp4", one.text


def test_one_model_of_twenty_may_be_an_exception_and_is_named(monkeypatch):
    twenty = Measured(CodecSpec("gist"), {"A": OnFamily(2, 0.97, "hard", 20, 19, 3, {"hard": 0.97})})
    ten = Measured(CodecSpec("sfpr"), {"A": OnFamily(4, 0.97, "hard", 10, 9, 3)})
    assert (twenty.families["A"].good, ten.families["A"].good) == (True, False)
    monkeypatch.setattr(recommended, "measured", lambda: (ten, twenty))
    assert recommended.recommended("A").text == "gist"
    assert recommended.exceptions("A") == "hard (0.970)"


def test_verdicts():
    assert [verdict(cosine) for cosine in (1.0, 0.99, 0.98, 0.9, 0.89, 0.0)] == ["good"] * 2 + ["risky"] * 2 + ["noise"] * 2


def test_the_list_tells_them_apart():
    text = CliRunner().invoke(app, ["list", "--all"]).output
    part = text[text.index("\npolicies:") : text.index("\nbackends:")]
    for name in POLICY_NAMES:
        (line,) = re.findall(rf"^  {re.escape(name)} +(.*)$", part, re.MULTILINE)
        assert line.startswith(status(name))
        assert all(family in line for family in good_for(name))
