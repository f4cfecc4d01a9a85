"""Penstock beside what programs use otherwise: cells, competitors, search, report, page."""
