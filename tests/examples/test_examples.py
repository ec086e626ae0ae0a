"""The examples run as their first lines say, and show what they promise."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/run.py"), *EXAMPLES.glob("*/test_*.py")])
NOTEBOOK = EXAMPLES / "notebook.ipynb"
SIMULATOR = "icarus" if shutil.which("iverilog") else "verilator"


def run(folder, *words):
    """Return what an example prints, started in an empty folder."""
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_each_begins_with_three_lines_on_what_it_shows(path):
    first, empty, second, third, end = path.read_text(encoding="utf-8").splitlines()[:5]
    assert first.startswith('"""')
    assert len(first) > 40
    assert (empty, end) == ("", '"""')
    assert second
    assert third


def test_a_network_trains_and_says_what_was_kept(tmp_path):
    said = run(tmp_path, EXAMPLES / "train_resnet.py", "--steps", 6, "--batch", 16)
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)$", said, re.MULTILINE)]
    assert len(losses) == 12
    assert losses[0] == losses[6]  # the first forward pass is the same
    assert float(re.search(r"in 1/(\d+\.\d) of their bytes", said)[1]) > 3
    assert re.search(r"mean loss of the last 1 steps: \d\.\d+ uncompressed, \d\.\d+ with jpeg-act", said)


#: Starts an example beside a torchvision that may be of another build than torch, which transformers and Lightning import.
BESIDE_TORCHVISION = """
import runpy, sys
from contextlib import suppress
from actcodec.study.models import library
from cdu_tools.errors import MissingToolError
with suppress(MissingToolError):
    library.torchvision()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.campaign
@pytest.mark.skipif(not find_spec("accelerate"), reason="needs accelerate: pip install 'actcodec[frameworks]'")
def test_transformers_trainer_goes_on_from_a_checkpoint(tmp_path):
    said = run(tmp_path, "-c", BESIDE_TORCHVISION, EXAMPLES / "transformers_trainer.py", "--steps", 6)
    found = re.search(r"^loss (\S+) to (\S+); all that autograd keeps in 1/(\S+) of", said, re.MULTILINE)
    first, last, ratio = map(float, found.groups())
    assert last < first
    assert ratio > 5
    assert "weights of the run that was gone on with: the same to the last bit" in said


@pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers: pip install 'actcodec[models]'")
@pytest.mark.parametrize(("codec", "least"), [("bypass", 0.99), pytest.param("mxint8", 1.9, marks=pytest.mark.campaign)])
def test_a_model_writes_with_a_compressed_cache(tmp_path, codec, least):
    said = run(tmp_path, "-c", BESIDE_TORCHVISION, EXAMPLES / "kv_generate.py", "--codec", codec, "--new", 40)
    same, new, ratio = map(float, re.search(r"(\d+) of (\d+) new ones.*, (\S+) times fewer", said, re.DOTALL).groups())
    assert ratio > least
    assert same == new or codec != "bypass"


@pytest.mark.campaign
@pytest.mark.skipif(not find_spec("lightning"), reason="needs lightning: pip install 'actcodec[frameworks]'")
def test_lightning_trains_as_a_file_says(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('[compression]\npolicy = "sfpr"\nonly = "layers.4"\n', encoding="utf-8")
    said = run(tmp_path, "-c", BESIDE_TORCHVISION, EXAMPLES / "lightning_digits.py", "--epochs", 1, "--config", mine)
    assert float(re.search(r"accuracy (\S+)$", said, re.MULTILINE)[1]) > 0.2
    codecs = dict(re.findall(r"^(layers\.\d) .* (sfpr|exact|brc) +\d+ +\d+ ", said, re.MULTILINE))
    assert {name for name, codec in codecs.items() if codec == "sfpr"} == {"layers.4"}


def test_a_system_in_amaranth_compresses_and_decompresses(tmp_path):
    assert "the golden model's, and so are the restored values" in run(tmp_path, EXAMPLES / "amaranth_soc.py")


def test_a_bare_test_bench_drives_the_delivered_verilog(tmp_path):
    said = run(tmp_path, EXAMPLES / "axi_testbench" / "run.py", "--sim", SIMULATOR, "-o", "out")
    assert "5 tests, 0 failures" in said
    bench = (EXAMPLES / "axi_testbench" / "test_unit.py").read_text(encoding="utf-8")
    assert not re.search(r"\b(?:import|from) (?:cdu|actcodec)", bench)


def cells(kind):
    """Texts of the notebook's cells of a kind."""
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == kind]


#: JPEG-ACT again, on whole blocks of a channel, in floating point: 8 bits by the channel's largest value, orthonormal DCT,
#: coefficients rounded, then truncated to multiples of the table's powers of two.
PLAIN_JPEG_ACT = """
import numpy as np
from cdu_spec.dqt import shifts
from cdu_spec.sfpr import PUBLISHED_S
from scipy.fft import dctn, idctn

x = activations[0].double().numpy()
unit = np.abs(x).max((1, 2), keepdims=True) / (128 * PUBLISHED_S)
samples = np.clip(np.rint(x / unit), -128, 127)
channels, height, width = x.shape
blocks = samples.reshape(channels, height // 8, 8, width // 8, 8)
step = 2.0 ** np.array(shifts("optL")).reshape(8, 1, 8)
levels = np.clip(np.trunc(np.rint(dctn(blocks, axes=(2, 4), norm="ortho")) / step), -128, 127)
plain = np.clip(np.rint(idctn(levels * step, axes=(2, 4), norm="ortho")), -128, 127).reshape(x.shape) * unit
print("plain error", np.linalg.norm(plain - x) / np.linalg.norm(x))
"""


def test_the_notebook_shows_bytes_errors_and_a_picture(tmp_path):
    script = "\n".join([*cells("code"), 'figure.savefig("shown.png")', PLAIN_JPEG_ACT])
    (tmp_path / "notebook.py").write_text(script, encoding="utf-8")
    said = run(tmp_path, "notebook.py")
    rows = re.findall(r"^ *(\S+) +\d+ bytes  ratio +(\d+\.\d)  relative error (\d\.\d+)$", said, re.MULTILINE)
    found = {name: (float(ratio), float(error)) for name, ratio, error in rows}
    assert found["bypass"][1] == 0
    assert found["jpeg-act"][0] > found["sfpr"][0] > 3
    # Integer passes move a coefficient across a multiple of its step now and then.
    assert found["jpeg-act"][1] == pytest.approx(float(re.search(r"^plain error (\S+)$", said, re.MULTILINE)[1]), rel=0.005)
    assert (tmp_path / "shown.png").stat().st_size > 10_000


def test_the_notebook_is_kept_without_outputs_and_begins_with_what_it_shows():
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in content["cells"] if "outputs" in cell)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    title, empty, *lines = cells("markdown")[0].splitlines()
    assert title.startswith("# ")
    assert empty == ""
    assert len(lines) == 3
    for text in cells("markdown"):
        for target in re.findall(r"\]\(([^)]+)\)", text):
            assert (EXAMPLES / target).is_file()
