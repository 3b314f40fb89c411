"""Analysis of wiring: the inputs that a policy uses, and changes of the wiring during one or several runs.

Returns and statistics are in the folder above; the wiring log itself is read in `storage/logs/`.
"""
