"""The papers' experiments as TOML: a matrix for each size, and their tables with the numbers."""
