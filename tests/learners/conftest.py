"""Files of these tests are in memory: runs sync theirs often."""

from in_memory import tmp_path as tmp_path
