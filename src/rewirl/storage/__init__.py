"""A run on disk: folder, lock, checkpoint, tables, wiring log, provenance; starting, resuming and verifying it.

The computation of a run is in `training/`.
"""

from rewirl.storage.folder import RunInfo, inspect_run, list_runs, run_folder
from rewirl.storage.new_run import start
from rewirl.storage.resumed_run import resume
from rewirl.storage.verification import verify

__all__ = ["RunInfo", "inspect_run", "list_runs", "resume", "run_folder", "start", "verify"]
