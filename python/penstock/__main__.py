"""``python -m penstock``."""

from penstock.cli import main

main()
