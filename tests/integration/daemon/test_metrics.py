"""The Prometheus endpoint: names of the vocabulary, values that follow what happens."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.request

import pytest
from conftest import Daemon, fill, layout, until
from memdecay import Client, MemdecayError

NAMES = (
    "pages",
    "device_slots",
    "tier_bytes",
    "tier_limit_bytes",
    "evictions_total",
    "restores_total",
    "regret_total",
    "lookups_total",
    "hit_tokens_total",
    "store_rejected_total",
    "checksum_failures_total",
    "fence_wait_seconds",
    "decision_seconds",
    "ack_late_total",
    "evict_skipped_total",
    "pending_expired_total",
    "leases",
    "pins_pages",
    "pin_overflow_total",
    "pages_approximate",
    "quarantined_slots",
    "engines",
    "errors_total",
    "mailbox_depth",
    "mailbox_rejected_total",
    "copy_bytes_total",
    "copy_seconds",
    "sessions",
)


def scrape(daemon: Daemon) -> str:
    with urllib.request.urlopen(f"http://{daemon.metrics_address()}/metrics", timeout=10) as page:
        return page.read().decode()


def value(text: str, sample: str) -> float:
    found = re.search(rf"^memdecay_{re.escape(sample)} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def test_every_name_of_the_vocabulary_has_help(daemon: Daemon) -> None:
    text = scrape(daemon)
    for name in NAMES:
        assert f"# HELP memdecay_{name} " in text, name


def test_values_follow_what_happens(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        session = client.open(layout())
        fill(client, session, 2)
        text = scrape(daemon)
        assert value(text, 'device_slots{state="valid"}') == 2
        assert value(text, 'engines{state="alive"}') == 1
        assert value(text, "decision_seconds_count") > 3
        refused = value(text, 'errors_total{code="invalid_argument"}')
        with pytest.raises(MemdecayError):
            session.extend(0)
        until(lambda: value(scrape(daemon), 'errors_total{code="invalid_argument"}') == refused + 1)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")
def test_promtool_has_nothing_to_say(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        fill(client, client.open(layout()), 2)
        text = scrape(daemon)
    # The exporter library's own metrics are not ours to name.
    own = "".join(line for line in text.splitlines(keepends=True) if "exposer_" not in line)
    result = subprocess.run(
        ["promtool", "check", "metrics"], input=own, capture_output=True, text=True, timeout=30
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_endpoint_can_be_left_out(start) -> None:
    daemon = start("metrics.listen=none")
    assert 'metrics=""' in daemon.log()


def test_address_that_is_taken_is_said(daemon: Daemon, directory) -> None:
    other = directory / "o"
    other.mkdir()
    second = Daemon(other, f"metrics.listen={daemon.metrics_address()}")
    assert second.process.wait(20) == 1
    assert "metrics.listen" in second.log()
