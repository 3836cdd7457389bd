"""One offline HTML page per experiment. It opens without a network, and every string in it is escaped."""

from narrows.report.page import build, text

__all__ = ["build", "text"]
