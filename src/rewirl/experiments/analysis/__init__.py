"""Analysis of runs: loading, grouping, metrics, statistics, comparisons, and changes of the wiring.

Tables, figures and pages are in `report/`.
"""
