"""The tables of a report, and how a table is written as HTML, Markdown, LaTeX and CSV.

Where their numbers come from: `analysis/`.
"""
