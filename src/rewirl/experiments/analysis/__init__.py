"""What came of runs: loading, grouping, metrics, statistics, comparisons, and how the wiring changed.

No tables, figures or pages: those are in `report/`.
"""
