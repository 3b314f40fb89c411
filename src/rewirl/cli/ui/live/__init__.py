"""Live displays on a terminal, plain lines elsewhere: of a run, a sweep, a search.

Tables that are printed once are in `ui/tables.py`.
"""
