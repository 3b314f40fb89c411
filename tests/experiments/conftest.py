import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))  # for `tiny`
sys.path.insert(0, str(Path(__file__).parent))  # for `synthetic`

from in_memory import tmp_path as tmp_path
