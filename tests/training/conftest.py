import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `tiny`, which other processes run as a program too

from in_memory import tmp_path as tmp_path
