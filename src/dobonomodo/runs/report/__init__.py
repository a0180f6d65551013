"""The report of a run as one HTML file, and the index of all runs."""

from dobonomodo.runs.report.index import render_index
from dobonomodo.runs.report.page import Link, Links, render_report

__all__ = ["Link", "Links", "render_index", "render_report"]
