"""The help of options names what the catalogues hold."""

import re

from actcodec.study.networks import NETWORKS
from actcodec.training import POLICY_NAMES
from cdu_cli.help_names import with_names
from cdu_offload.catalog import TITLES
from click.testing import CliRunner
from command_line import ENTRY


def _help(command):
    result = CliRunner().invoke(ENTRY, [command, "--help"], env={"COLUMNS": "4000"})
    assert result.exit_code == 0, result.output
    return result.output


def test_names_are_those_of_the_catalogues():
    assert with_names("one of {models}.") == f"one of {', '.join(NETWORKS)}."
    assert with_names("modes=A|B,C|D") == "modes=A|B,C|D"


def test_help_has_them():
    for command, names in (("train", (*POLICY_NAMES, *NETWORKS)), ("offload", TITLES)):
        # A line may end behind the hyphen of a name.
        text = re.sub(r"-\n\s*", "-", _help(command))
        assert all(name in text for name in names), command


def test_no_help_of_any_command_has_a_name_left_open():
    for command in ENTRY.commands:
        # Arguments stand in braces of their own, but before the options.
        assert not re.search(r"\{[a-z]+\}", _help(command).partition("Options:")[2]), command


def test_no_help_of_any_command_has_types_of_python():
    for command in ENTRY.commands:
        assert not re.search(r"<\w|list\[", _help(command)), command
    assert "--seed INTEGER" in _help("verify")
    assert "--bits NUMBER" in _help("compress")
