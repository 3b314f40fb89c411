"""`rewirl report`: a page, figures and tables about runs."""

from rewirl.experiments.report.writing import write_report

__all__ = ["write_report"]
