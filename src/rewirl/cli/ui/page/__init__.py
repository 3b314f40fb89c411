"""The HTML page of `rewirl inspect --html`.

The page of `rewirl report` is in `experiments/report`.
"""
