"""Recipes of open cores: what is refused, which sources are taken for those of a commit, what a recipe makes."""

import subprocess
from dataclasses import replace

import pytest
from cdu_peers import peers
from cdu_tools import yosys
from cdu_tools.errors import UserError

GOOD = """
[core]
address = "https://example.org/someone/core"
commit = "0123456789abcdef0123456789abcdef01234567"
licence = "MIT"
top = "m"
files = ["rtl/m.v"]
include = ["rtl"]
does = "keeps a word"
samples_per_cycle = 2
rate_source = "port d"
parameters = { N = "6" }
"""
DESIGN = """`include "m.vh"
module m #(parameter N = 4)(input clk, input [N-1:0] d, output reg [N-1:0] q);
`STEP q <= d;
endmodule
"""


def git(folder, *arguments):
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def unpacked(tmp_path):
    """A folder with the sources of the recipe, without git."""
    rtl = tmp_path / "core" / "rtl"
    rtl.mkdir(parents=True)
    (rtl / "m.v").write_text(DESIGN)
    (rtl / "m.vh").write_text("`define STEP always @(posedge clk)\n")
    return tmp_path


@pytest.fixture
def checkout(unpacked):
    """The same as a checkout of git, and its recipe."""
    git(unpacked / "core", "init", "-q")
    git(unpacked / "core", "add", ".")
    git(unpacked / "core", "commit", "-qm", "first")
    [recipe] = peers.read(GOOD)
    return unpacked, replace(recipe, commit=git(unpacked / "core", "rev-parse", "HEAD"))


def test_the_shipped_recipes_are_whole():
    names = [recipe.name for recipe in peers.recipes()]
    wanted = {"stream-ebpc-encoder", "stream-ebpc-decoder", "hls-idct-1r1c", "preprocessing-accelerator-dct"}
    assert wanted | {"frame-dct-1d", "frame-dct-2d"} == set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('licence = "MIT"\n', ""), "missing 1 required positional argument: 'licence'"),
        (('licence = "MIT"', 'licence = ""'), "no licence"),
        (('top = "m"', 'tpo = "m"'), "unknown field 'tpo': did you mean top"),
        (("0123456789abcdef0123", "0123"), "give all 40 digits"),
        (("https://example.org/someone/core", "core"), "give https://HOST/OWNER/NAME"),
        (("samples_per_cycle = 2", "samples_per_cycle = 0"), "give a positive number"),
        (("samples_per_cycle = 2", 'samples_per_cycle = "2"'), "give a positive number"),
        (('["rtl/m.v"]', '"rtl/m.v"'), "files are no list of texts"),
        (('["rtl/m.v"]', "[]"), "no files"),
        (("rtl/m.v", "../m.v"), "not one inside of the repository"),
        (("rtl/m.v", "/m.v"), "not one inside of the repository"),
        (('rate_source = "port d"', 'rate_source = "port d"\naccuracy = "good"'), "accuracy and its source come together"),
        (("[core]", "core = 1\n[other]"), "recipe core is not a table"),
        (("[core]", "[core"), "the recipes are not TOML"),
    ],
)
def test_bad_recipes_are_refused(change, sentence):
    assert peers.read(GOOD)
    with pytest.raises(UserError, match=sentence) as caught:
        peers.read(GOOD.replace(*change))
    assert "\n" not in str(caught.value)


def test_sources_that_are_not_there_come_with_the_command(tmp_path, unpacked):
    [recipe] = peers.read(GOOD)
    place = tmp_path / "my peers"
    with pytest.raises(UserError) as caught:
        recipe.checked(place)
    command = f"git clone https://example.org/someone/core '{place}/core' && git -C '{place}/core' checkout {recipe.commit}"
    assert str(caught.value) == f"not here: {command}"
    (unpacked / "core" / "rtl" / "m.v").unlink()
    with pytest.raises(UserError, match=r"not here \(rtl/m\.v is missing\)"):
        recipe.checked(unpacked)


def test_a_checkout_must_be_that_of_the_commit(checkout):
    folder, recipe = checkout
    assert recipe.checked(folder)
    with pytest.raises(UserError, match="differs from commit 0123456789ab"):
        peers.read(GOOD)[0].checked(folder)
    (folder / "core" / "rtl" / "m.vh").write_text("`define STEP always @(negedge clk)\n")
    with pytest.raises(UserError, match="differs from commit"):
        recipe.checked(folder)
    git(folder / "core", "commit", "-qam", "second")
    with pytest.raises(UserError, match="differs from commit"):
        recipe.checked(folder)
    git(folder / "core", "checkout", "-q", recipe.commit)
    assert recipe.checked(folder)


def test_sources_without_git_are_not_verified(unpacked):
    """Not even when they lie inside of somebody else's checkout."""
    [recipe] = peers.read(GOOD)
    assert not recipe.checked(unpacked)
    git(unpacked, "init", "-q")
    assert not recipe.checked(unpacked)


def test_a_recipe_makes_its_top_with_its_parameters(unpacked):
    [recipe] = peers.read(GOOD)
    text = recipe.verilog(unpacked, yosys.engine())
    assert "module m(" in text
    assert "output [5:0] q" in text
