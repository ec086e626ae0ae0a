"""The release of the placer is what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

from cdu_placement import placer
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_placer_is_asked_for_where_it_has_a_file():
    (placing,) = (one for one in map(Requirement, PROJECT["optional-dependencies"]["place"]) if one.name == placer.PACKAGE)
    pythons = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    for python in pythons:
        has_a_file = tuple(map(int, python.split("."))) <= placer.LATEST_PYTHON
        assert placing.marker.evaluate({"python_version": python}) == has_a_file
    assert str(placing.specifier) == f"=={placer.RELEASE}"
