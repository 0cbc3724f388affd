"""Part b: one session at a quarter of its pages, forgetting by MemDecay; then it is repaired.

Lossy mode: pages leave while the session computes, so what is computed later differs. The session
is fed the tokens of the full run, so that the rows of logits can be compared one by one; then both
go on by themselves for 32 tokens. Part f looks at the reasons.
"""

from __future__ import annotations

import collections
import contextlib
import re
from typing import Any

import outside
from baseline import GREEDY_TOKENS, Baseline
from logits import divergence, rows, sha256
from processes import Daemon, Engine, Failed, words
from show import Show

BUDGET = "25%"
SESSION = "forgetful"
REGIONS = ("system", "plan", "user", "tool_in", "tool_out", "retrieval", "scratchpad")


def run_lossy(show: Show, baseline: Baseline) -> None:
    settings = {"device.pages": baseline.pages * 2, "host.pages": baseline.pages * 2}
    raw = show.path("lossy.f32")
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon(show.programs, show.path("daemon-lossy"), settings))
        watch = stack.enter_context(outside.ResidencyWatch(daemon.metrics_address))
        flags = words(
            "--socket {socket} --session {session} --mode lossy --budget {budget} --lockstep"
            " --commands --episode {episode} --follow {followed} --raw-logits {raw}",
            socket=daemon.folder,
            session=SESSION,
            budget=BUDGET,
            episode=show.programs.episode(baseline.episode),
            followed=baseline.events,
            raw=raw,
        )
        engine = stack.enter_context(Engine(show.programs, show.path("lossy.err"), *flags))
        budget = engine.ready["budget_pages"]
        turns = [engine.turn() for _ in baseline.turns]
        greedy = engine.do(f"generate {GREEDY_TOKENS}", "generated")
        watch.look()
        report = {
            "tokens": turns[-1]["known_tokens"],
            "budget_pages": budget,
            "max_resident_pages": watch.most,
            "given_up_by_region": _given_up(daemon),
            "approximate_pages": daemon.session(SESSION)["approximate_pages"],
        }
        _explain(show, daemon)
        show.pictures.append(
            f"session {SESSION} at {BUDGET} of its pages:\n" + daemon.ctl("pages", SESSION)
        )
        full, own = baseline.rows(), rows(raw, baseline.vocabulary())
        answered = sum(len(turn["rows"]) for turn in turns)
        report["mean_kl"] = sum(divergence(full[i], own[i]) for i in range(answered)) / answered
        wanted = baseline.greedy["generated"]
        same = sum(a == b for a, b in zip(greedy["generated"], wanted, strict=True))
        report["greedy32_agreement"] = same / GREEDY_TOKENS
        report |= _repair(show, engine, baseline, sha256(full[answered]))
        show.report["lossy"] = report
        _check(show, report, watch)
        engine.stop()
        show.check("lossy", "memdecayctl check", daemon.check(), "every counter agrees")


def _check(show: Show, report: dict[str, Any], watch: outside.ResidencyWatch) -> None:
    gone, most, budget = (
        report[key] for key in ("given_up_by_region", "max_resident_pages", "budget_pages")
    )
    show.say(
        f"  forgot {sum(gone.values())} pages, mean KL {report['mean_kl']:.4f} over the answers, "
        f"{report['greedy32_agreement']:.0%} of {GREEDY_TOKENS} greedy tokens agree"
    )
    show.check(
        "lossy",
        "never more pages than the budget",
        0 < most <= budget,
        f"{most} of {budget}, {watch.samples} looks at /metrics",
    )
    show.check(
        "lossy",
        "no system page given up",
        gone["system"] == 0 < sum(gone.values()),
        ", ".join(f"{name} {count}" for name, count in gone.items() if count),
    )


def _given_up(daemon: Daemon) -> dict[str, int]:
    """Evictions by region, from /metrics."""
    counts: collections.Counter[str] = collections.Counter(dict.fromkeys(REGIONS, 0))
    for labels, value in outside.metrics(daemon.metrics_address).get(
        "memdecay_evictions_total", []
    ):
        counts[labels["region"]] += int(value)
    return dict(counts)


def _explain(show: Show, daemon: Daemon) -> None:
    """Part f: why one page left and why another stayed."""
    pages = daemon.ask("pages", SESSION)["pages"]
    left = next((p for p in pages if p["view"]["state"] in ("hole", "given_up")), None)
    stayed = next((p for p in pages if p["spared"] and p["view"]["state"] == "mapped"), None)
    if left is None or stayed is None:
        raise Failed("a session at a quarter of its pages has none that left and one that stayed")
    texts = []
    for page in (left, stayed):
        number = page["view"].get("page", 0)
        texts.append(f"explain {SESSION}:{number}\n" + daemon.ctl("explain", f"{SESSION}:{number}"))
    show.check(
        "explain",
        "of a page given up: score and pressure",
        re.search(r"score", texts[0]) and re.search(r"budget|pressure", texts[0]),
        f"page {left['view'].get('page', 0)}",
    )
    show.check(
        "explain",
        "of a page spared: the reason",
        stayed["spared"][0] in texts[1],
        f"page {stayed['view'].get('page', 0)}: {', '.join(stayed['spared'])}",
    )
    show.pictures += texts


def _repair(show: Show, engine: Engine, baseline: Baseline, wanted: str) -> dict[str, object]:
    # What the session said by itself goes; the last token of the episode is computed last.
    engine.do(f"truncate {baseline.tokens}", "truncated")
    event = engine.do("repair", "repaired")
    logits = engine.do("logits", "logits")
    equal = logits["logits_sha256"] == wanted
    show.say(
        f"  repaired: {event['repair_tokens']} tokens computed again "
        f"(told beforehand: {event['told_tokens']}), {event['restored_pages']} pages restored"
    )
    show.check(
        "lossy",
        "after repair the logits of the full run",
        equal,
        f"{event['repair_tokens']} tokens recomputed",
    )
    return {"repair_tokens": event["repair_tokens"], "repaired_equal": equal}
