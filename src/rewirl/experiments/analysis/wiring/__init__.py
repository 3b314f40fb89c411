"""What became of the links: which inputs a policy uses, how its wiring changed during a run, and over several runs.

Returns and statistics are in the folder above; the wiring log itself is read in `storage/logs/`.
"""
