"""The paper: its experiments as presets, and the numbers that it prints.

Running and computing are elsewhere.
"""
