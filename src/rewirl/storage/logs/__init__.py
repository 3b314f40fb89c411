"""The files of a run folder that grow while it trains: CSV tables, the wiring log, the replay.

A checkpoint (`storage/checkpoint.py`) decides which of their rows are valid.
"""
