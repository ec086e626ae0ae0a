"""Settings for shared test machines: one thread, and no deadline for property tests; failures print how to repeat them."""

import sys
from pathlib import Path

import torch
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
torch.set_num_threads(1)
settings.register_profile("shared", deadline=None, print_blob=True)
settings.load_profile("shared")
