"""Jobs of the reference driver with their golden results."""

from random import Random

from cdu_spec.register_types import Channel
from cdu_verif.content.payloads import float_bytes
from cdu_verif.content.tensors import exchange
from cdu_verif.simulation.driver_jobs import driver_job
from compiled_units import EVERYTHING

SHAPES = ((1, 1, 1, 1), (2, 3, 7, 9), (1, 20, 2, 8), (3, 2, 7, 33), (1, 3, 8, 70))


def jobs_of(count, modes=EVERYTHING.built_modes, seed=0, kind="normal", channel=Channel.COMPRESS, config=EVERYTHING):
    """Yield jobs of a direction with their golden results, as a unit of ``config`` does them."""
    rng = Random(seed)
    for number in range(count):
        item = exchange(config, rng, rng.choice(SHAPES), modes[number % len(modes)], kind)
        values = float_bytes(item.beats)
        if channel is Channel.COMPRESS:
            yield driver_job(item.compression, values), item.payload
        else:
            yield driver_job(item.decompression, item.payload), float_bytes(item.restored)
