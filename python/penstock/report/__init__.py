"""Reports: what was measured or logged, as one page (docs/report.md).

A source (`load`) becomes a `Report`, which is a value (`bench`, `compared`, `job`, `darshan_log`);
a page, Markdown or pictures are made of it (`page`, `markdown`, `export`).
"""
