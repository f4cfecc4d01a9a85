"""Where samples were taken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import provenance
from penstock.bench.sample import Provenance


def test_machine_and_file_system_are_named(tmp_path: Path) -> None:
    found = provenance.collect(tmp_path, mpi=[{"flavour": "mpich"}], native="/x").model_dump()
    assert found["kernel"] == os.uname().release
    assert found["cpus"] >= 1
    assert found["write_back"]["dirty_ratio"] is not None
    assert found["mpi"] == [{"flavour": "mpich"}]
    where = found["file_system"]
    assert tmp_path.is_relative_to(where["mount"])
    assert where["geometry"]["block_bytes"] > 0
    assert where["options"]
    assert where["type"]


def test_the_same_machine_has_the_same_id(tmp_path: Path) -> None:
    assert provenance.collect(tmp_path).id == provenance.collect(tmp_path).id


def test_two_builds_of_one_commit_are_two(tmp_path: Path) -> None:
    engine = tmp_path / "penstock-engine-mpich.so"
    engine.write_bytes(b"one")
    before = provenance.collect(tmp_path, native=str(tmp_path))
    engine.write_bytes(b"two")
    now = provenance.collect(tmp_path, native=str(tmp_path))
    assert before.id != now.id
    assert provenance.changes(before, now).startswith("native_digest ")


def test_what_changed_is_named() -> None:
    before = Provenance(id="1", kernel="6.1", file_system={"options": "rw"})
    now = Provenance(id="2", kernel="6.18", file_system={"options": "rw,noatime"})
    assert provenance.changes(before, now) == (
        "file_system.options rw -> rw,noatime, kernel 6.1 -> 6.18"
    )


@pytest.mark.parametrize(
    ("told", "mount"),
    [
        ("/donn\u00e9es", "/donn\u00e9es"),
        (r"/my\040disk", "/my disk"),
        (r"/a\134nb", r"/a\nb"),
        ("/a\u2028b", "/a\u2028b"),
    ],
)
def test_a_mount_point_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, mount: str
) -> None:
    (tmp_path / "self").mkdir()
    lines = [
        "22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/root rw",
        f"23 22 0:21 / {told} rw,noatime shared:2 - xfs /dev/disk rw",
    ]
    text = "".join(f"{line}\n" for line in lines)
    (tmp_path / "self" / "mountinfo").write_text(text, encoding="utf-8")
    monkeypatch.setattr(provenance, "_PROC", tmp_path)
    found = provenance._mount(Path(mount) / "below")
    assert (found["type"], found["mount"]) == ("xfs", mount)


def test_memory_has_no_device() -> None:
    assert provenance.file_system(Path("/dev/shm"))["device"] is None  # noqa: S108


@pytest.mark.parametrize(
    ("device", "place"),
    [
        (None, "ext4"),
        ({"name": "vda1"}, "ext4"),
        ({"name": "loop0"}, "ext4 on a loop device"),  # of samples before its image was looked at
        ({"name": "loop0", "image_on": "tmpfs"}, "ext4 on a loop device in tmpfs"),
    ],
)
def test_a_disk_that_is_a_file_is_told(device: dict[str, Any] | None, place: str) -> None:
    assert provenance.place_of({"type": "ext4", "device": device}) == place


def test_what_is_not_known_of_a_disk_is_said() -> None:
    assert provenance.place_of({}) == "an unknown file system"
