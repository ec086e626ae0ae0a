"""Cases that another process makes: the same, with the same random numbers, and a bench that imports no golden model."""

import subprocess
import sys
from functools import partial
from random import Random

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_verif import blocks
from cdu_verif.cases import served

CONFIG = CduConfig()


def ports_of(block):
    return {port["name"]: port for port in generator.kept(CONFIG, block).manifest["ports"]}


def all_of(cases, ports):
    """All that cases can give, and the next random number behind it."""
    rng = Random(4)
    found = [cases.random(CONFIG, ports, rng, blocks) for blocks in (1, 3)]
    found += cases.corners(CONFIG, ports, rng) + cases.steady(CONFIG, ports, rng, 6) + cases.broken(CONFIG, ports, rng)
    defined = [
        cases.defined(stream, ports[f"{stream}__payload"], words) for case in found for stream, words in case.expected.items()
    ]
    return found, defined, rng.random(), (cases.blocks, cases.rate_blocks, cases.settling, cases.event_ports)


@pytest.mark.parametrize("block", ["splitter", "affine_quantizer"])
def test_they_are_those_of_the_block(block):
    ports = ports_of(block)
    with served.lend(partial(blocks.cases, block)) as address:
        assert all_of(served.BorrowedCases(address), ports) == all_of(blocks.cases(block), ports)


def printed(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True).stdout


def test_one_process_after_the_other_gets_them():
    borrow = "import sys; from cdu_verif.cases.served import BorrowedCases; print(BorrowedCases(sys.argv[1]).rate_blocks)"
    with served.lend(partial(blocks.cases, "dct")) as address:
        for _ in range(2):
            assert printed(borrow, address) == f"{blocks.cases('dct').rate_blocks}\n"


def test_nobody_waits_for_anybody():
    """Two have them at a time, and both are there when it is over: neither keeps the other or the lender waiting."""
    with served.lend(partial(blocks.cases, "dct")) as address:
        one, other = served.BorrowedCases(address), served.BorrowedCases(address)
    for borrowed in (other, one):
        assert borrowed.random(CONFIG, ports_of("dct"), Random(1), 1) == blocks.cases("dct").random(
            CONFIG, ports_of("dct"), Random(1), 1
        )


def test_what_went_wrong_there_is_said_here():
    with served.lend(partial(blocks.cases, "dct")) as address:
        borrowed = served.BorrowedCases(address)
        with pytest.raises(RuntimeError, match=r"no cases: Traceback[\s\S]*AttributeError"):
            borrowed.random(None, ports_of("dct"), Random(1), 1)
    with (
        served.lend(partial(blocks.cases, "array")) as address,
        pytest.raises(RuntimeError, match="array has no cases of its own streams"),
    ):
        served.BorrowedCases(address)


def test_nobody_has_to_ask():
    with served.lend(partial(blocks.cases, "dct")) as address:
        pass
    with pytest.raises((FileNotFoundError, ConnectionRefusedError)):
        served.BorrowedCases(address)


def test_the_bench_of_a_block_imports_no_golden_model():
    """A simulation of a block takes seconds; torch would be one of them."""
    modules = "cdu_verif.benches.blocks, cdu_verif.benches.broken_jobs"
    assert printed(f"import sys, {modules}; print(*{{'torch', 'amaranth'}} & set(sys.modules))") == "\n"
