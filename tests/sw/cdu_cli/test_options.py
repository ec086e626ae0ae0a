"""Return the configuration that --config and --set give."""

from cdu_cli.options import configuration


def test_a_unit_of_a_file_that_is_changed_has_another_name(tmp_path):
    (tmp_path / "mine.toml").write_text('modes = ["brc", "sfpr"]\n')
    file = str(tmp_path / "mine.toml")
    assert configuration(file, None).unit_name == "mine"
    assert configuration(file, ["modes=sfpr,brc"]).unit_name == "mine"
    assert configuration(file, ["cdus=3", "duplex=half"]).unit_name == "mine_cdus_3_duplex_half"
    assert configuration(file, ["cdus=3", "name=other"]).unit_name == "other"
    assert configuration("tiny", ["cdus=3"]).unit_name == "tiny_cdus_3"
    assert configuration("tiny", ["cdus=1"]).unit_name == "tiny"
