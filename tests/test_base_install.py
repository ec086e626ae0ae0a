"""Commands of the base installation run without the packages of extras; others name the extra in one sentence."""

import subprocess
import sys

import pytest

#: Imports the command line where packages of extras are not installed.
WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"cocotb", "matplotlib", "PIL", "scipy", "simpy", "sklearn", "torch"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from cdu_cli.main import main

main()
"""


def cdu(folder, *words):
    command = [sys.executable, "-c", WITHOUT_EXTRAS, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--version"], ["list"], ["registers", "--config", "tiny", "-o", "out"]])
def test_hardware_needs_no_extra(tmp_path, words):
    done = cdu(tmp_path, *words)
    assert done.returncode == 0, done.stderr


def test_verilog_needs_no_extra(tmp_path):
    done = cdu(tmp_path, "generate", "--block", "zvc_encoder", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "zvc_encoder.v").is_file()


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["compress", "x.npy", "x.cdu"], "train"),
        (["train"], "train"),
        (["check", "mine.py"], "train"),
        (["memory", "timm.test_vit"], "train"),
        (["offload", "-o", "out"], "train"),
        (["vectors", "-o", "out"], "verify"),
        (["verify", "-o", "out"], "verify"),
        (["synth", "--block", "dct", "-o", "out"], "plots"),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else part,
)
def test_what_needs_an_extra_names_it_in_one_line(tmp_path, words, extra):
    done = cdu(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("cdu: error: ")
    assert line.endswith(f"is not installed: add it with `pip install 'actcodec[{extra}]'`")
    assert not list(tmp_path.iterdir())
