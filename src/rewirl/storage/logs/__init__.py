"""The files of a run folder that grow while it trains: CSV tables, the wiring log, the replay.

Which of their rows count is decided by the checkpoint, in `storage/checkpoint.py`.
"""
