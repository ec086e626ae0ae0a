"""The commands ``cdu compress`` and ``cdu decompress``."""

import json
import pickle
import re
import subprocess
import sys
import weakref
from pathlib import Path

import actcodec
import numpy as np
import pytest
import torch
import typer
from actcodec.codecs import container
from cdu_cli import compress
from cdu_cli.tensor_compression import TensorCompression
from cdu_cli.tensor_files import read_tensors
from cdu_spec import UserError
from command_line import ENTRY
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner


@pytest.fixture
def run():
    app = typer.Typer()
    compress.register(app)

    def call(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def array(tmp_path):
    values = np.random.default_rng(0).standard_normal((2, 3, 9, 17)).astype(np.float32)
    path = tmp_path / "in.npy"
    np.save(path, values)
    return path, values


@pytest.mark.parametrize(
    ("words", "name", "options"),
    [
        ([], "jpeg-act", {}),
        (["--dqt", "optH", "--S", "1.0"], "jpeg-act", {"dqt": "optH", "S": 1.0}),
        (["--dqt", "uniform-32", "--rec", "0.375"], "jpeg-act", {"dqt": "uniform-32", "rec": 3 / 8}),
        (["--codec", "jpeg-gmc"], "jpeg-gmc", {}),
        (["--codec", "jpeg-gmc", "--dqt", "optL", "--rec", "0"], "jpeg-gmc", {"dqt": "optL", "rec": 0}),
        (["--codec", "jpeg-base"], "jpeg-base", {}),
        (
            ["--codec", "jpeg-base", "--huffman", "optimal", "--rounding", "trunc"],
            "jpeg-base",
            {"huffman": "optimal", "rounding": "trunc"},
        ),
        (["--codec", "sfpr+zvc"], "sfpr+zvc", {}),
        (["--codec", "brc"], "brc", {}),
        (["--codec", "bypass"], "bypass", {}),
        (["--codec", "division"], "division", {}),
        (
            ["--codec", "division", "--bits", "4", "--range", "channel", "--seed", "3"],
            "division",
            {"bits": 4, "range": "channel", "seed": 3},
        ),
        (["--codec", "actnn", "--rounding", "nearest"], "actnn", {"rounding": "nearest"}),
        (["--codec", "blpa", "--bits", "8"], "blpa", {"bits": 8}),
        (["--codec", "autoquant"], "autoquant", {}),
        (["--codec", "autoquantz", "--bits", "4"], "autoquantz", {"bits": 4}),
    ],
)
def test_round_trip(run, array, tmp_path, words, name, options):
    path, values = array
    stream, back, report = tmp_path / "x.cdu", tmp_path / "out.npy", tmp_path / "report.json"
    assert run("compress", path, stream, *words, "--json", report).exit_code == 0
    packed = actcodec.codec(name, **options).compress(torch.from_numpy(values))
    assert stream.read_bytes() == packed.to_bytes()
    assert json.loads(report.read_text())["bytes_compressed"] == packed.nbytes
    assert run("decompress", stream, back).exit_code == 0
    assert np.array_equal(np.load(back), packed.decompress().numpy())
    assert np.load(back).dtype == np.float32


def test_half_precision_and_foreign_byte_order_and_fortran_order(run, tmp_path):
    values = np.random.default_rng(0).standard_normal((4, 100)).astype(np.float16)
    for name, stored in (("half", values), ("big", values.astype(">f2")), ("fortran", np.asfortranarray(values))):
        np.save(tmp_path / f"{name}.npy", stored)
        run("compress", tmp_path / f"{name}.npy", tmp_path / f"{name}.cdu", "--codec", "sfpr")
    expected = actcodec.codec("sfpr").compress(torch.from_numpy(values)).to_bytes()
    assert all((tmp_path / f"{name}.cdu").read_bytes() == expected for name in ("half", "big", "fortran"))
    run("decompress", tmp_path / "half.cdu", tmp_path / "half_back.npy")
    assert np.load(tmp_path / "half_back.npy").dtype == np.float16


def test_bypass_keeps_nan_infinity_and_the_sign_of_zero(run, tmp_path):
    values = np.array([np.nan, -np.inf, -0.0, 1e-40, 3.0], dtype=np.float32)
    values[:1].view(np.uint32)[0] = 0xFFC12345
    np.save(tmp_path / "x.npy", values)
    run("compress", tmp_path / "x.npy", tmp_path / "x.cdu", "--codec", "bypass")
    run("decompress", tmp_path / "x.cdu", tmp_path / "back.npy")
    assert np.load(tmp_path / "back.npy").tobytes() == values.tobytes()


def test_bfloat16_becomes_float32_with_a_note(run, tmp_path):
    x = torch.randn(64, generator=torch.Generator().manual_seed(0)).bfloat16()
    packed = actcodec.codec("sfpr").compress(x)
    (tmp_path / "x.cdu").write_bytes(packed.to_bytes())
    result = run("decompress", tmp_path / "x.cdu", tmp_path / "x.npy")
    assert "no bfloat16" in result.stderr
    assert np.array_equal(np.load(tmp_path / "x.npy"), packed.decompress().float().numpy())


class Trap:
    """Would run code if it were unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def bad_files(folder):
    np.save(folder / "double.npy", np.ones(4))
    np.save(folder / "nan.npy", np.full((1, 1, 8, 8), np.nan, dtype=np.float32))
    np.save(folder / "empty.npy", np.zeros((0, 3), dtype=np.float32))
    np.save(folder / "flat.npy", np.ones(64, dtype=np.float32))
    np.save(folder / "objects.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    (folder / "pickle.npy").write_bytes(pickle.dumps(Trap()))
    (folder / "text.npy").write_text("1 2 3")
    (folder / "nothing.npy").write_bytes(b"")
    whole = (folder / "flat.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-5])
    (folder / "header.npy").write_bytes(whole[:20])
    (folder / "garbled.npy").write_bytes(whole[:10] + b"{(((" + whole[14:])
    np.savez(folder / "archive.npy.npz", np.ones(3))
    (folder / "archive.npy").write_bytes((folder / "archive.npy.npz").read_bytes()[:-9])
    (folder / "hollow").mkdir()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.npy", "No such file"),
        ("double.npy", "holds float64: use float32, bfloat16, float16, or convert with --cast"),
        ("nan.npy", "NaN or infinite"),
        ("empty.npy", "empty tensor"),
        ("flat.npy", "use sfpr"),
        ("objects.npy", "Python objects"),
        ("pickle.npy", "it is no .npy, .npz, .safetensors or torch"),
        ("text.npy", "it is no .npy, .npz, .safetensors or torch"),
        ("nothing.npy", "it is no .npy, .npz, .safetensors or torch"),
        ("cut.npy", "no whole .npy file"),
        ("header.npy", "no whole .npy file"),
        ("garbled.npy", "no whole .npy file"),
        ("archive.npy", "no whole .npz or torch file"),
        ("hollow", "the folder .*hollow has no file that ends with .npy, .npz, "),
    ],
)
def test_bad_input_leaves_no_output(run, tmp_path, name, message):
    bad_files(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        run("compress", tmp_path / name, tmp_path / "out.cdu")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("rank", range(10))
def test_every_rank_comes_back_or_is_refused(run, tmp_path, rank):
    """Rows first, columns first and big endian: the same array; ranks that the header does not have: one sentence, no file."""
    array = np.arange(2 ** min(rank, 3), dtype=np.float32).reshape((2,) * min(rank, 3) + (1,) * max(rank - 3, 0)) + 1
    for number, form in enumerate((array, np.array(array, order="F"), array.astype(">f4"))):
        source, packed, target = (tmp_path / f"{number}{suffix}" for suffix in (".npy", ".cdu", "-back.npy"))
        np.save(source, form)
        if rank in (0, 9):
            with pytest.raises(UserError, match=rf"a tensor of rank {rank}: reshape it to a rank from 1 to 8") as caught:
                run("compress", source, packed, "--codec", "bypass")
            assert "\n" not in str(caught.value)
            assert not packed.exists()
            continue
        run("compress", source, packed, "--codec", "bypass")
        run("decompress", packed, target)
        back = np.load(target)
        assert back.shape == array.shape
        assert np.array_equal(back, array)


def test_bad_streams(run, array, tmp_path):
    path, _ = array
    run("compress", path, tmp_path / "x.cdu")
    whole = (tmp_path / "x.cdu").read_bytes()
    for bad in (b"", whole[:-1], whole[:100] + b"\xff" + whole[101:], b"PK" + whole[2:]):
        (tmp_path / "bad.cdu").write_bytes(bad)
        with pytest.raises(UserError, match=r"bad\.cdu: "):
            run("decompress", tmp_path / "bad.cdu", tmp_path / "out.npy")
    with pytest.raises(UserError, match="cannot read"):
        run("decompress", tmp_path / "absent.cdu", tmp_path / "out.npy")
    assert not list(tmp_path.glob("out*"))


def test_an_existing_file_survives_a_failure(run, array, tmp_path):
    path, _ = array
    (tmp_path / "out.cdu").write_bytes(b"precious")
    with pytest.raises(UserError):
        run("compress", path, tmp_path / "out.cdu", "--codec", "zip")
    assert (tmp_path / "out.cdu").read_bytes() == b"precious"


def named_files(folder):
    """Files of the same tensors in every format with names."""
    generator = torch.Generator().manual_seed(0)
    tensors = {"conv.weight": torch.randn(4, 3, 8, 8, generator=generator), "bias": torch.randn(4, generator=generator).half()}
    np.savez(folder / "x.npz", **{name: tensor.numpy() for name, tensor in tensors.items()})
    save_file(tensors, folder / "x.safetensors")
    torch.save(tensors, folder / "x.pt")
    return tensors


@pytest.mark.parametrize("ending", ["npz", "safetensors", "pt"])
@pytest.mark.parametrize("back", ["npz", "safetensors", "pt"])
def test_files_of_several_tensors_come_back(run, tmp_path, ending, back):
    tensors = named_files(tmp_path)
    packed, restored, report = tmp_path / "x.cdu", tmp_path / f"back.{back}", tmp_path / "x.json"
    run("compress", tmp_path / f"x.{ending}", packed, "--codec", "sfpr", "--json", report)
    expected = {name: actcodec.codec("sfpr").compress(tensor) for name, tensor in tensors.items()}
    entries = container.parse(packed.read_bytes())
    assert {name: one.to_bytes() for name, one in entries.items()} == {n: one.to_bytes() for n, one in expected.items()}
    about = json.loads(report.read_text())
    assert about["bytes_compressed"] == packed.stat().st_size
    assert about["bytes_original"] == sum(tensor.nbytes for tensor in tensors.values())
    assert {name: one["bytes_compressed"] for name, one in about["tensors"].items()} == {
        name: one.nbytes for name, one in expected.items()
    }
    run("decompress", packed, restored, "--json", report)
    assert json.loads(report.read_text())["tensors"]["bias"]["dtype"] == "float16"
    found = {name: load() for name, load in read_tensors([restored], None).loads.items()}
    assert sorted(found) == sorted(tensors)
    for name, one in expected.items():
        assert torch.equal(found[name], one.decompress())
        assert found[name].dtype == tensors[name].dtype


def test_bfloat16_of_safetensors_and_torch_stays(run, tmp_path):
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    save_file({"x": x}, tmp_path / "x.safetensors")
    torch.save(x, tmp_path / "x.pt")
    expected = actcodec.codec("jpeg-gmc").compress(x)
    for source, back in (("x.safetensors", "back.safetensors"), ("x.pt", "back.pt")):
        run("compress", tmp_path / source, tmp_path / "x.cdu", "--codec", "jpeg-gmc")
        assert run("decompress", tmp_path / "x.cdu", tmp_path / back).stderr.count("note") == 0
    assert torch.equal(load_file(tmp_path / "back.safetensors")["x"], expected.decompress())
    assert torch.equal(torch.load(tmp_path / "back.pt", weights_only=True), expected.decompress())
    assert (tmp_path / "x.cdu").read_bytes() == expected.to_bytes()


def test_a_tensor_that_the_codec_does_not_take(run, tmp_path):
    tensors = named_files(tmp_path)
    with pytest.raises(UserError, match=r"x\.pt: tensor 'bias': jpeg-act does not take .*; --keep keeps such tensors exactly"):
        run("compress", tmp_path / "x.pt", tmp_path / "out.cdu")
    assert not list(tmp_path.glob("out*"))
    run("compress", tmp_path / "x.pt", tmp_path / "out.cdu", "--keep")
    entries = container.parse((tmp_path / "out.cdu").read_bytes())
    assert [one.codec for one in entries.values()] == ["jpeg-act", "exact"]
    assert torch.equal(entries["bias"].decompress(), tensors["bias"])


def test_a_report_of_each_tensor(run, tmp_path):
    named_files(tmp_path)
    result = run("compress", tmp_path / "x.pt", tmp_path / "x.cdu", "--codec", "sfpr", "--report")
    lines = result.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["conv.weight", "bias"]
    assert all(re.search(r"ratio [\d.]+, largest error [\d.e-]+, RMS [\d.e-]+, PSNR [\d.]+ dB$", line) for line in lines[:2])


@pytest.mark.parametrize(("words", "name"), [(["--ratio", 5], "ratio"), (["--max-error", 0.6], "max_error")])
def test_a_goal_is_kept(run, array, tmp_path, words, name):
    path, values = array
    run("compress", path, tmp_path / "x.cdu", *words, "--report", "--json", tmp_path / "x.json", "--codec", "jpeg-base")
    run("decompress", tmp_path / "x.cdu", tmp_path / "back.npy")
    error = np.abs(np.load(tmp_path / "back.npy").astype(float) - values).max()
    about = json.loads((tmp_path / "x.json").read_text())
    assert about["max_error"] == error
    assert about["ratio"] == values.nbytes / (tmp_path / "x.cdu").stat().st_size
    assert about["ratio"] >= 5 if name == "ratio" else error <= 0.6
    assert about["options"]["dqt"].startswith("uniform-")


def test_a_cast_of_doubles(run, array, tmp_path):
    path, values = array
    np.save(tmp_path / "double.npy", values.astype(float))
    run("compress", tmp_path / "double.npy", tmp_path / "double.cdu", "--cast", "float32")
    run("compress", path, tmp_path / "single.cdu")
    assert (tmp_path / "double.cdu").read_bytes() == (tmp_path / "single.cdu").read_bytes()


def test_folders_and_files_become_one_container(run, tmp_path):
    (tmp_path / "run").mkdir()
    named_files(tmp_path / "run")
    for ending in ("npz", "safetensors"):
        (tmp_path / "run" / f"x.{ending}").unlink()
    np.save(tmp_path / "y.npy", np.ones(9, np.float32))
    run("compress", tmp_path / "run", tmp_path / "y.npy", tmp_path / "all.cdu", "--codec", "sfpr")
    assert list(container.parse((tmp_path / "all.cdu").read_bytes())) == ["x/conv.weight", "x/bias", "y"]
    with pytest.raises(UserError, match=r"x\.pt is read and written"):
        run("compress", tmp_path / "run", tmp_path / "run" / "x.pt", "--codec", "sfpr")


def test_the_backend_is_the_fastest_and_help_says_lossy_first():
    for command in (ENTRY.commands["compress"], ENTRY.commands["decompress"]):
        assert {option.name: option.default for option in command.params}["backend"] == "auto"
        assert "lossy" in command.help.partition(".")[0]


def test_one_tensor_of_a_container_is_in_memory_at_a_time(run, tmp_path, monkeypatch):
    """Neither a tensor nor its stream is there when the next one is compressed."""
    np.savez(tmp_path / "x.npz", **{f"x{place}": np.full(64, place + 1, np.float32) for place in range(5)})
    alive, most = weakref.WeakSet(), []
    original = TensorCompression.compress

    def watched(self, tensor):
        alive.add(tensor)
        done = original(self, tensor)
        alive.add(done.packed.payload)
        most.append(len(alive))
        return done

    monkeypatch.setattr(TensorCompression, "compress", watched)
    run("compress", tmp_path / "x.npz", tmp_path / "x.cdu", "--codec", "sfpr", "--report")
    assert len(container.parse((tmp_path / "x.cdu").read_bytes())) == 5
    assert len(most) == 5
    # The packed tensor before may still be bound while the next one is made.
    assert max(most) <= 3


@pytest.mark.parametrize("before", [None, b"precious"])
def test_an_error_in_the_last_tensor_leaves_nothing(run, tmp_path, before):
    np.savez(tmp_path / "x.npz", good=np.ones(64, np.float32), bad=np.full(64, np.nan, np.float32))
    target = tmp_path / "out.cdu"
    if before:
        target.write_bytes(before)
    with pytest.raises(UserError, match=r"x\.npz: tensor 'bad': 64 of 64 values are NaN"):
        run("compress", tmp_path / "x.npz", target, "--codec", "sfpr")
    assert sorted(path.name for path in tmp_path.iterdir()) == (["out.cdu"] if before else []) + ["x.npz"]
    assert not before or target.read_bytes() == before


@pytest.fixture
def folder_of_files(tmp_path):
    """A folder of arrays with one below it, and an archive beside it; the arrays by name."""
    generator = np.random.default_rng(0)
    arrays = {name: generator.standard_normal((2, 3, 8, 8)).astype(np.float32) for name in ("one", "below/two", "three")}
    (tmp_path / "in" / "below").mkdir(parents=True)
    for name in ("one", "below/two"):
        np.save(tmp_path / "in" / f"{name}.npy", arrays[name])
    np.savez(tmp_path / "three.npz", inner=arrays["three"])
    return arrays


def test_each_file_becomes_one_in_a_folder_and_comes_back(run, tmp_path, folder_of_files):
    packed, back = tmp_path / "packed", tmp_path / "back"
    report = tmp_path / "report.json"
    run("compress", tmp_path / "in", tmp_path / "three.npz", "-o", packed, "--codec", "sfpr", "--json", report)
    made = sorted(str(path.relative_to(packed)) for path in packed.rglob("*.cdu"))
    assert made == ["below/two.cdu", "one.cdu", "three.cdu"]
    assert sorted(json.loads(report.read_text())["files"]) == sorted(str(packed / name) for name in made)
    for name in ("one", "below/two"):
        expected = actcodec.codec("sfpr").compress(torch.from_numpy(folder_of_files[name]))
        assert (packed / f"{name}.cdu").read_bytes() == expected.to_bytes()
    run("decompress", packed, "-o", back, "--json", report)
    assert sorted(json.loads(report.read_text())["files"]) == sorted(
        str(back / name) for name in ("below/two.npy", "one.npy", "three.npz")
    )
    assert np.allclose(np.load(back / "below" / "two.npy"), folder_of_files["below/two"], atol=0.1)
    assert np.allclose(np.load(back / "three.npz")["inner"], folder_of_files["three"], atol=0.1)


def test_one_file_goes_to_a_folder(run, array, tmp_path):
    path, _ = array
    run("compress", path, "-o", tmp_path / "packed")
    run("decompress", tmp_path / "packed" / "in.cdu", "-o", tmp_path / "back")
    assert [one.name for one in (tmp_path / "back").iterdir()] == ["in.npy"]


def test_two_files_of_one_name_do_not_overwrite_each_other(run, array, tmp_path):
    path, values = array
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "in.npy", values)
    with pytest.raises(UserError, match="in"):
        run("compress", path, tmp_path / "other" / "in.npy", "-o", tmp_path / "packed")
    assert not list(tmp_path.rglob("*.cdu"))


def test_several_files_are_not_restored_to_one(run, tmp_path):
    with pytest.raises(UserError, match=r"2 files are restored to a folder: give one with -o"):
        run("decompress", tmp_path / "a.cdu", tmp_path / "b.cdu", tmp_path / "out")


_USE = "use float32, bfloat16, float16"


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (torch.arange(3), f"it holds int64: {_USE}, or convert with --cast; --keep keeps such tensors exactly"),
        (torch.ones(3, dtype=torch.complex64), f"it holds complex64: {_USE}"),
        (torch.ones(3).to(torch.float8_e4m3fn), f"it holds float8_e4m3fn: {_USE}, or convert with --cast"),
        (torch.eye(3).to_sparse(), "cannot compress sparse tensors: compress x.to_dense(), or the values"),
        (
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "cannot compress nested tensors: compress its values, or each of its x.unbind()",
        ),
    ],
)
def test_advice_for_a_tensor_of_a_file_helps(tmp_path, tensor, said):
    torch.save({"x": tensor}, tmp_path / "x.pt")
    command = [Path(sys.executable).with_name("cdu"), "compress", "x.pt", "x.cdu", "--codec", "sfpr"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"cdu: error: x.pt: tensor 'x': {said}\n")
