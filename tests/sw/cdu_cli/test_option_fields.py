"""Commands whose options are the fields of a dataclass."""

import re
from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer
from actcodec.study.setup import TrainingSetup
from cdu_cli.option_fields import training_setup, values_of, with_options
from cdu_cli.options import ImageOptions, SizeOptions, given
from cdu_cli.train import TrainOptions
from click.testing import CliRunner
from command_line import ENTRY


@dataclass(frozen=True, kw_only=True)
class Options:
    word: Annotated[str, typer.Argument()]
    images: ImageOptions
    batch: Annotated[int, typer.Option("--size-of-batch", min=1)] = 5
    size: SizeOptions


@pytest.fixture
def run():
    """Runs a command with these options; the options that it was called with, and what it printed."""
    seen = []
    app = typer.Typer(rich_markup_mode=None)
    app.command(epilog="The end.")(with_options(Options, command(seen)))

    def run(*words):
        result = CliRunner().invoke(typer.main.get_command(app), words)
        return (seen.pop() if seen else None), result

    return run


def command(seen):
    def remember(options):
        """Remember the options."""
        seen.append(options)

    return remember


def test_fields_have_the_values_that_are_given_and_their_defaults(run):
    options, _ = run("it", "--limit", "3", "--size-of-batch", "7", "--depth", "2")
    assert options == Options(word="it", images=ImageOptions(limit=3), batch=7, size=SizeOptions(depth=2))
    assert run("it")[0] == Options(word="it", images=ImageOptions(), size=SizeOptions())


def test_help_has_the_options_in_the_order_of_the_fields(run):
    _, result = run("--help")
    listed = re.findall(r"^  (--[\w-]+)", result.output, re.MULTILINE)
    assert listed[:7] == ["--model", "--dataset", "--data", "--limit", "--size-of-batch", "--width", "--depth"]
    assert "Remember the options." in result.output


@pytest.mark.parametrize("words", [(), ("it", "--size-of-batch", "0"), ("it", "--limit", "many"), ("it", "--else")])
def test_bounds_and_types_are_those_of_the_annotations(run, words):
    options, result = run(*words)
    assert options is None
    assert result.exit_code == 2


def test_a_training_has_the_options_of_its_names_and_defaults_of_others():
    options = Options(word="it", images=ImageOptions(model="vgg", limit=9), batch=6, size=SizeOptions(width=4))
    assert training_setup(options) == TrainingSetup("vgg", limit=9, batch=6, width=4)


def test_train_has_an_option_for_everything_that_a_training_has():
    values = {parameter.name: parameter.default for parameter in ENTRY.commands["train"].params}
    assert {field.name for field in fields(TrainingSetup)} <= set(values)
    kinds = {field.name for field in fields(TrainOptions)}
    assert {"images", "codec_options", "size"} < kinds
    assert {field.name: values[field.name] for field in fields(TrainingSetup)} == vars(TrainingSetup())


def test_values_of_all_fields():
    options = Options(word="it", images=ImageOptions(), size=SizeOptions(depth=3))
    assert list(values_of(options)) == ["word", "model", "dataset", "data", "limit", "batch", "width", "depth"]
    assert values_of(options)["depth"] == 3


def test_options_of_a_codec_that_are_given_and_whole_bits():
    assert given(bits=None, S=None) == {}
    both = given(bits=4.0, S=2.0)
    assert both == {"bits": 4, "S": 2.0}
    assert type(both["bits"]) is int
    assert given(bits=2.5) == {"bits": 2.5}
