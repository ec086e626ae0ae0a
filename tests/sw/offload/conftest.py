"""The tests share small networks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
