"""What is kept of a generated block is what would be generated, and it is generated once."""

import json
from dataclasses import asdict

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.config import ConfigError
from cdu_tools import cache


def test_what_is_kept_is_what_is_generated(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    calls = []
    first, second = (generator.kept(CduConfig(), "brc_encoder", lambda: calls.append(0)) for _ in range(2))
    assert len(calls) == 1
    assert first == second
    made = generator.generate(CduConfig(), "brc_encoder")
    assert asdict(first) == json.loads(json.dumps(asdict(made)))
    texts = []
    for name, one in (("made", made), ("kept", first)):
        (tmp_path / name).mkdir()
        texts.append([path.read_text() for path in one.write(tmp_path / name)])
    assert texts[0] == texts[1]
    generator.kept(CduConfig(cdus=2), "brc_encoder", lambda: calls.append(1))
    generator.kept(CduConfig(), "brc_decoder", lambda: calls.append(2))
    assert calls == [0, 1, 2]


def test_nothing_is_kept_of_what_cannot_be_generated(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    for _ in range(2):
        with pytest.raises(ConfigError, match="dtc"):
            generator.kept(CduConfig(), "dtc")
