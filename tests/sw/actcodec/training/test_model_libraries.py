"""Reports on torchvision, timm and transformers: installed, missing, or installed but failing to import."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from actcodec.study.models import library
from cdu_tools.errors import MissingToolError

ASK = "import sys; from actcodec.study.models.library import version; print(version(sys.argv[1]))"
BROKEN = "raise RuntimeError('operator torchvision::nms does not exist')"


@pytest.fixture
def beside(tmp_path):
    """A process that finds a torchvision and a transformers with these texts before those that are installed."""

    def start(command, **texts):
        for name, text in texts.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(text, encoding="utf-8")
            (tmp_path / f"{name}-9.8.dist-info").mkdir()
            (tmp_path / f"{name}-9.8.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 9.8\n", encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    return start


@pytest.mark.parametrize("name", ["torchvision", "transformers"])
def test_what_imports_has_a_version(beside, name):
    assert beside([sys.executable, "-c", ASK, name], torchvision="", transformers="").stdout == "9.8\n"


def test_the_list_says_what_to_do_with_a_torchvision_of_another_build(beside, tmp_path):
    program = Path(sysconfig.get_path("scripts")) / "cdu"
    found = tmp_path / "list.json"
    done = beside([program, "list", "--json", found], torchvision=BROKEN, transformers="import torchvision")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(found.read_text(encoding="utf-8"))["models"]}
    reason = f"does not import beside torch {torch.__version__} (operator torchvision::nms does not exist): "
    advice = "`pip uninstall torchvision`, or install the build of the package index that torch came from"
    assert rows["torchvision"] == {"name": "torchvision", "here": False, "add": f"it {reason}{advice}"}
    assert rows["transformers"]["add"] == f"transformers finds torchvision, which {reason}{advice}"


@pytest.mark.parametrize(
    ("name", "add"),
    [
        ("torchvision", "package index that torch came from"),
        ("timm", "pip install timm"),
        ("transformers", r"pip install 'actcodec\[models\]'"),
    ],
)
def test_what_is_missing_is_named_with_what_adds_it(monkeypatch, name, add):
    monkeypatch.setattr(library, "find_spec", lambda _: None)
    with pytest.raises(MissingToolError, match=add):
        library.version(name)
    with pytest.raises(MissingToolError, match=f"needs {name}: .*{add}"):
        getattr(library, name)()
