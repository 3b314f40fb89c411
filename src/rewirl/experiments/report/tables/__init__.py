"""The tables of a report, and how a table is written as HTML, Markdown, LaTeX and CSV.

Their numbers come from `analysis/`.
"""
