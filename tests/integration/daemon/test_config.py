"""Configuration: what is wrong is refused with key and line, what is right is what is in effect."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BIN

ROOT = Path(__file__).resolve().parents[3]


def memdecayd(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "memdecayd"), *arguments], capture_output=True, text=True, timeout=30
    )


def check(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return memdecayd("--check-config", "--config", str(path))


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("device:\n  pages: 8\n  pagez: 9\n", "device.pagez", 3),
        ("host:\n  bytes: 100 gigs\n", "host.bytes", 2),
        ("host:\n  bytes: 10G\n", "host.bytes", 2),
        ("sinks: many\n", "sinks", 1),
        ("sinks: -1\n", "sinks", 1),
        ("\n\npolicy:\n  name: fifo\n", "policy.name", 4),
        ("policy:\n  name: lru\n  alpha: 0.5\n", "policy.alpha", 3),
        ("watermark:\n  high: 80\n  low: 90\n", "watermark.low", 3),
        ("device:\n  pages: 8\n  bytes: 1MiB\npage_bytes: 4096\n", "device.bytes", 3),
        ("device:\n  bytes: 1MiB\n", "device.bytes", 2),
        ("host:\n  pages: 8\n  bytes: 1MiB\n", "host.bytes", 3),
        ("device: {pages: 8}\ntenants:\n  - name: a\n    reservation: 9\n", "tenants[0].reser", 4),
        ("tenants:\n  - name: a\n    limit: 2\n    reservation: 3\n", "tenants[0].reser", 4),
        ("tenants:\n  - name: a\n  - name: a\n", "tenants[1].name", 3),
        ("tenants:\n  - name: a\n    colour: red\n", "tenants[0].colour", 3),
        ("sinks: 1\nsinks: 2\n", "sinks", 1),
        ("mode: fuzzy\n", "mode", 1),
        ("mode: lossy\nlossy_allowed: false\n", "mode", 1),
        ("socket:\n  mode: 0666\n", "socket.mode", 2),
        ("metrics:\n  listen: somewhere\n", "metrics.listen", 2),
        ("disk:\n  bytes: 1GiB\n", "disk.bytes", 2),
        ("remote:\n  url: x\n", "remote.url", 2),
        ("device:\n  - pages\n", "device", 1),
    ],
)
def test_wrong_key_is_refused_with_its_line(tmp_path: Path, text: str, key: str, line: int) -> None:
    result = check(tmp_path, text)
    assert result.returncode == 2
    assert key in result.stderr
    assert f"(line {line})" in result.stderr


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    result = check(tmp_path, "device:\n  pages: [8\nsinks: 1\n")
    assert result.returncode == 2
    assert "line" in result.stderr


def test_smaller_host_than_device_is_a_warning(tmp_path: Path) -> None:
    result = check(tmp_path, "device:\n  pages: 8\nhost:\n  pages: 4\n")
    assert result.returncode == 0
    assert "warning: host.pages (line 4)" in result.stderr


@pytest.mark.parametrize(
    ("size", "printed"), [("10GB", "10GB"), ("10GiB", "10GiB"), ("1000KiB", "1000KiB")]
)
def test_powers_of_1000_and_of_1024_are_both_exact(size: str, printed: str) -> None:
    result = memdecayd("--print-config", "--set", f"host.bytes={size}")
    assert f"  bytes: {printed}\n" in result.stdout


def test_10_gb_are_not_10_gib() -> None:
    gb = memdecayd("--print-config", "--set", "host.bytes=10000000000").stdout
    assert gb == memdecayd("--print-config", "--set", "host.bytes=10GB").stdout
    gib = memdecayd("--print-config", "--set", "host.bytes=10737418240").stdout
    assert gib == memdecayd("--print-config", "--set", "host.bytes=10GiB").stdout


def test_example_is_good_current_and_names_every_key() -> None:
    path = ROOT / "deploy" / "memdecayd.example.yaml"
    assert memdecayd("--check-config", "--config", str(path)).returncode == 0
    text = path.read_text()
    assert text == memdecayd("--print-example").stdout
    effective = memdecayd("--print-config").stdout
    for key in re.findall(r"^\s*([a-z_]+):", effective, re.MULTILINE):
        assert re.search(rf"^\s*-? ?#?{key}:", text, re.MULTILINE), key


def test_effective_configuration_means_the_same_when_read_again(tmp_path: Path) -> None:
    words = ["device.pages=7", "policy=lru", "socket.admin_uids=[1,2]", "lease_ms=5", "sinks=0"]
    arguments = [part for word in words for part in ("--set", word)]
    first = memdecayd("--print-config", *arguments).stdout
    path = tmp_path / "c.yaml"
    path.write_text(first)
    assert memdecayd("--print-config", "--config", str(path)).stdout == first
    assert "  pages: 7\n" in first


def test_help_has_an_example() -> None:
    result = memdecayd("--help")
    assert result.returncode == 0
    assert "Example: memdecayd --config" in result.stdout


def test_missing_file_is_said() -> None:
    result = memdecayd("--config", "/nowhere/c.yaml")
    assert result.returncode == 2
    assert "/nowhere/c.yaml" in result.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_unit_file_is_understood(tmp_path: Path) -> None:
    # The program need not be installed for the unit to be right.
    text = (ROOT / "deploy" / "memdecayd.service").read_text()
    unit = tmp_path / "memdecayd.service"
    unit.write_text(text.replace("/usr/bin/memdecayd", "/bin/true"))
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stderr == "" and result.returncode == 0
