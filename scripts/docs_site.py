#!/usr/bin/env python3
"""Builds the documentation site into build/site, and checks its links: `make site`.

MkDocs does it, without network; mkdocs.yml says how. Whatever it warns of is an error.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_links

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"


def build(configuration: Path = ROOT / "mkdocs.yml", to: Path = SITE) -> bool:
    """Whether it could be built; if not, what MkDocs says is on stderr.

    Without --quiet, which would keep warnings from --strict as well.
    """
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    command += ["--config-file", str(configuration), "--site-dir", str(to)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},  # the theme's word for its successor
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
    return done.returncode == 0


def main() -> int:
    argparse.ArgumentParser(description="Build build/site and check its links.").parse_args()
    if not build() or check_links.main([str(SITE)]):
        return 1
    print(f"open {(SITE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
