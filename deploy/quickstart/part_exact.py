"""Part a: three sessions share a pool of 40 % of what they need, and give the same bits.

Exact mode: pages leave only from sessions that pause; a session goes on when all its pages are
back. Seen from outside: occupied slots, evictions and restores by /metrics, where the engines'
pages lie and how much memory of their own they have by /proc.
"""

from __future__ import annotations

import contextlib

import outside
from baseline import Baseline
from processes import Daemon, Engine, Event
from show import Show

POOL_PERCENT = 40
# An engine's own memory while its context grows by tens of megabytes of KV.
FLAT_BYTES = 8 << 20


def run_exact(show: Show, baselines: list[Baseline]) -> None:
    total = sum(baseline.pages for baseline in baselines)
    pool = total * POOL_PERCENT // 100
    settings = {"device.pages": pool, "host.pages": total}
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon(show.programs, show.path("daemon-exact"), settings))
        watch = stack.enter_context(outside.ResidencyWatch(daemon.metrics_address))
        engines = [
            stack.enter_context(_engine(show, daemon, baseline.episode)) for baseline in baselines
        ]
        turns, equal = _take_turns(show, engines, baselines)
        watch.look()
        evicted = outside.total(daemon.metrics_address, "evictions_total")
        restored = outside.total(daemon.metrics_address, "restores_total", outcome="ok")
        recomputed = sum(turn[-1]["recomputed_tokens"] for turn in turns)
        count = sum(len(turn) for turn in turns)
        show.report["exact"] = {
            "sessions": len(engines),
            "pool_pages": pool,
            "total_pages": total,
            "max_resident_pages": watch.most,
            "evicted_pages": evicted,
            "restored_pages": restored,
            "recomputed_tokens": recomputed,
            "turns": count,
            "turns_equal": equal,
        }
        show.check(
            "exact",
            "every turn's logits as with unlimited memory",
            equal == count,
            f"{equal} of {count} turns",
        )
        show.check("exact", "nothing computed twice", recomputed == 0, f"{recomputed} tokens")
        show.check(
            "exact",
            "pages left and came back",
            evicted > 0 and restored > 0,
            f"{evicted} out, {restored} in",
        )
        show.check(
            "exact",
            "never more pages than the pool has",
            0 < watch.most <= pool,
            f"{watch.most} of {pool}, {watch.samples} looks at /metrics",
        )
        show.pictures.append(
            f"session {baselines[0].episode} after its last turn, parked "
            f"(exact, pool of {pool} for {total} pages):\n"
            + daemon.ctl("pages", baselines[0].episode)
        )
        for engine in engines:
            engine.stop()
        show.check("exact", "memdecayctl check", daemon.check(), "every counter agrees")


def _engine(show: Show, daemon: Daemon, episode: str) -> Engine:
    flags = [
        "--socket",
        str(daemon.folder),
        "--session",
        episode,
        "--commands",
        "--episode",
        show.programs.episode(episode),
    ]
    return Engine(show.programs, show.path(f"exact-{episode}.err"), *flags)


def _take_turns(
    show: Show, engines: list[Engine], baselines: list[Baseline]
) -> tuple[list[list[Event]], int]:
    """Each session's turns, and how many of them have the baseline's logits."""
    turns: list[list[Event]] = [[] for _ in engines]
    own_before = [0 for _ in engines]
    equal = 0
    for number in range(len(baselines[0].turns)):
        for index, (engine, baseline) in enumerate(zip(engines, baselines, strict=True)):
            event = engine.turn()
            turns[index].append(event)
            same = event["logits_sha256"] == baseline.turns[number]["logits_sha256"]
            equal += same
            if number == 0:
                own_before[index] = outside.anonymous_bytes(engine.pid)
            show.say(
                f"  turn {number + 1} of {baseline.episode}: pages back in "
                f"{event['unpark_ms']:.0f} ms, {event['prefilled_tokens']} tokens in, "
                f"{len(event['generated'])} out, logits {'equal' if same else 'DIFFERENT'}"
            )
    for index, engine in enumerate(engines):
        growth = outside.anonymous_bytes(engine.pid) - own_before[index]
        context = turns[index][-1]["pages"] - turns[index][0]["pages"]
        show.check(
            "exact",
            f"own memory of engine {index + 1} is flat",
            growth <= FLAT_BYTES,
            f"{growth / 2**20:+.1f} MiB while its context grew by {context} pages",
        )
    _check_mappings(show, engines[-1])
    return turns, equal


def _check_mappings(show: Show, engine: Engine) -> None:
    listed = engine.do("pages", "pages")["list"]
    there = [page for page in listed if page["address"]]
    found = outside.places(engine.pid, [page["address"] for page in there])
    sealed = [p for page, p in zip(there, found, strict=True) if page["state"] == "mapped"]
    ok = bool(sealed) and all(found) and all(p is not None and "w" not in p.rights for p in sealed)
    show.check(
        "exact",
        "KV lies in the daemon's memfds, sealed pages read-only",
        ok,
        f"{len(found)} pages of engine {engine.pid} by /proc/PID/maps",
    )
