"""Cases that are made of jobs: the jobs, and the streams that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Generic, TypeVar

from cdu_spec.config import CduConfig

from cdu_verif.cases.case import Case, Cases
from cdu_verif.simulation.ports import Ports

Job = TypeVar("Job")


class JobCases(Cases, Generic[Job]):
    """Jobs by name, which :meth:`case` turns into the streams of a block."""

    blocks = (1, 30)
    rate_blocks = 240
    settling = 4

    def built(self, config: CduConfig) -> CduConfig:
        """Return the configuration that the block is built for."""
        return config

    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[Job]) -> Case:
        """Return the streams of some jobs."""
        raise NotImplementedError

    def corner_jobs(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[Job]]:
        """Return directed jobs by the name of their case."""
        raise NotImplementedError

    def random_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Sequence[Job]:
        """Return jobs of random modes, sizes and content."""
        raise NotImplementedError

    def steady_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Mapping[str, Sequence[Job]]:
        """Return the jobs with which the rate is measured, by the name of their case."""
        raise NotImplementedError

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return a case for each entry of :meth:`corner_jobs`."""
        built = self.built(config)
        return [self.case(built, ports, rng, name, jobs) for name, jobs in self.corner_jobs(built, rng).items()]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return the case of :meth:`random_jobs`."""
        built = self.built(config)
        return self.case(built, ports, rng, "random", self.random_jobs(built, rng, blocks))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return a case for each entry of :meth:`steady_jobs`."""
        built = self.built(config)
        return [self.case(built, ports, rng, name, jobs) for name, jobs in self.steady_jobs(built, rng, blocks).items()]
