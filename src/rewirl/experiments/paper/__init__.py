"""The paper: its experiments as presets, and the numbers that it prints.

Nothing here runs or computes.
"""
