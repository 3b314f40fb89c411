import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))  # for `tiny`
sys.path.insert(0, str(Path(__file__).parent))  # for `synthetic`


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory where there is such a place: runs sync their files often, and that is what a disk is slow at."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="rewirl-", dir=memory if memory.is_dir() else None))
    yield path
    shutil.rmtree(path, ignore_errors=True)
