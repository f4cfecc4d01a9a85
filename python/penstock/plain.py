"""Text of strangers (file names, logs) made fit for a page or a picture.

XML has no control characters, UTF-8 no half of a surrogate pair, and a mark that turns the
direction of writing would let one name look like another: each becomes U+FFFD. What is markup in a
format is escaped by whoever writes that format.
"""

from __future__ import annotations

import re

_UNFIT = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def plain(text: str) -> str:
    """The text with U+FFFD for what cannot be shown, or should not."""
    return _UNFIT.sub("\ufffd", text)
