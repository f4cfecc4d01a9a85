"""Which choices of a method exclude each other, and why: as the parser answers, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock import _core
from penstock.errors import ArgumentError, PenstockError


@dataclass(frozen=True)
class Refusal:
    """An algorithm, the choices of other families that it does not go with, and the reason."""

    algorithm: str
    others: tuple[str, ...]
    why: str


def refusals() -> list[Refusal]:
    """In the order of the algorithms. Syncs go with everything, and so do returns but one."""
    found: dict[tuple[str, str], list[str]] = {}
    for algorithm in ("auto", *(a.name for a in _core.algorithms()), "write_behind"):
        for other, method in _with_others(algorithm):
            if why := _why_refused(method):
                found.setdefault((algorithm, why), []).append(other)
    return [Refusal(name, tuple(others), why) for (name, why), others in found.items()]


def _with_others(algorithm: str) -> Iterator[tuple[str, str]]:
    """Each choice of another family, and the method of both; what is between is left as usual."""
    for exchange in ("none", *(e.name for e in _core.exchanges())):
        yield exchange, f"{algorithm} + {exchange}"
    usual = "none" if algorithm == "individual" else "messages"
    for mechanism in _ways():
        yield mechanism, f"{algorithm} + {usual} + {mechanism}"
    for policy in _core.sync_policies():
        sync = f"{policy.name}=1MiB" if policy.takes_bytes else policy.name
        yield policy.name, f"{algorithm} + {usual} + pwrite + {sync}"
    for back in ("written", "staged"):
        yield back, f"{algorithm} + {usual} + pwrite + none + {back}"


def _ways() -> Iterator[str]:
    """Each mechanism, plain and with the options that decide who may use it."""
    for m in _core.mechanisms():
        yield m.name
        if m.takes_direct:
            yield f"{m.name}(direct)"
        if m.takes_cold:
            yield f"{m.name}(direct=cold)"


def _why_refused(method: str) -> str:
    """Empty where it is legal, if only on other machines."""
    try:
        _core.parse_method(method)
    except ArgumentError as error:
        return str(error).removeprefix("method: ")
    except PenstockError:
        return ""  # this machine lacks the mechanism
    return ""
