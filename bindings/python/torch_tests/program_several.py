"""Runs several programs one after the other in the same processes, because the start of PyTorch takes seconds."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

for program in sys.argv[1:]:
    runpy.run_path(str(Path(__file__).parent / program), run_name="__main__")
