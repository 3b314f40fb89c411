"""`rewirl report`: a page, figures and tables about runs.

The numbers come from `analysis/`.
"""

from rewirl.experiments.report.writer import write_report

__all__ = ["write_report"]
