"""Displays of a run, a sweep and a search: live on a terminal, plain lines elsewhere.

Tables that are printed once are in `ui/tables.py`.
"""
