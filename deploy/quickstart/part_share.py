"""Parts c, d and e: storage, sharing, and an engine that is killed. One daemon, a roomy pool."""

from __future__ import annotations

import contextlib
import time

import outside
from baseline import Baseline
from processes import Daemon, Engine, Event, Failed, words
from show import Show

PAGE_TOKENS = 16
KEEP_EVERY = 4  # of the pages, when three quarters are given up
KILL_TURN = 3
KILL_TOKEN = 20  # of that turn: generated tokens are in sealed pages by then
WAIT_SECONDS = 60.0


def run_shared(show: Show, baseline: Baseline) -> None:
    settings = {"device.pages": baseline.pages * 4, "host.pages": baseline.pages * 4}
    with Daemon(show.programs, show.path("daemon-shared"), settings) as daemon:
        show.say("storage: prefill, give up three quarters, restore")
        _storage(show, daemon, baseline)
        show.say("sharing: a second engine with the same opening")
        _sharing(show, daemon, baseline)
        show.say("resume: kill -9 in mid-decode")
        _resume(show, daemon, baseline)
        clean = daemon.check()
        show.report["check"] = "clean" if clean else "differences"
        show.check("check", "memdecayctl check", clean, "every counter agrees")


def _open(show: Show, daemon: Daemon, baseline: Baseline, name: str, *flags: str) -> Engine:
    common = [
        "--socket",
        str(daemon.folder),
        "--commands",
        "--episode",
        show.programs.episode(baseline.episode),
    ]
    return Engine(show.programs, show.path(f"{name}.err"), *common, *flags)


def _wait_for_holes(daemon: Daemon, session: str, holes: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while (seen := daemon.session(session)["hole_pages"]) != holes:
        if time.monotonic() > deadline:
            raise Failed(f"{session}: {seen} pages are holes, {holes} were asked to leave")
        time.sleep(0.05)


def _storage(show: Show, daemon: Daemon, baseline: Baseline) -> None:
    flags = [
        "--session",
        "stored",
        "--no-share",
        "--grants-ahead",
        "0",
        "--follow",
        str(baseline.events),
    ]
    with _open(show, daemon, baseline, "stored", *flags) as engine:
        before = engine.do("replay", "replayed")
        slots = {page["page"]: _slot(page) for page in _pages(engine)}
        engine.do("park tool", "parked")
        leaving = [page for page in range(before["sealed_pages"]) if page % KEEP_EVERY]
        daemon.ctl("evict", "stored", ",".join(map(str, leaving)))
        _wait_for_holes(daemon, "stored", len(leaving))
        occupied = outside.occupied_slots(daemon.metrics_address)
        engine.do("unpark", "unparked")
        refilled = sum(_slot(page) != slots[page["page"]] for page in _pages(engine))
        after = engine.do("logits", "logits")
        engine.do("forget", "forgetting")
        engine.stop()
    equal = before["logits_sha256"] == after["logits_sha256"]
    show.report["storage"] = {
        "given_up_pages": len(leaving),
        "logits_sha256_before": before["logits_sha256"],
        "logits_sha256_after": after["logits_sha256"],
    }
    show.say(
        f"  {len(leaving)} of {before['pages']} pages left and came back, "
        f"{refilled} slots are new or filled anew"
    )
    show.check(
        "storage",
        "logits after restore are those before",
        equal,
        f"{len(leaving)} pages out and in",
    )
    show.check(
        "storage",
        "restored pages lie in slots that were filled anew",
        refilled >= len(leaving),
        f"{refilled} slots have another generation, or are others",
    )
    left = before["pages"] - len(leaving)
    show.check(
        "storage",
        "their slots were really free",
        occupied <= left,
        f"{occupied} slots occupied by /metrics, {before['pages']} pages",
    )


def _slot(page: dict) -> tuple[int, int, int]:
    """A place, and how many tenants it has had."""
    return page["slab"], page["slot"], page["generation"]


def _pages(engine: Engine) -> list[dict]:
    return engine.do("pages", "pages")["list"]


def _sharing(show: Show, daemon: Daemon, baseline: Baseline) -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(
            _open(show, daemon, baseline, "first", "--session", "first", "--grants-ahead", "0")
        )
        one = first.turn()
        occupied = outside.occupied_slots(daemon.metrics_address)
        second = stack.enter_context(
            _open(show, daemon, baseline, "second", "--session", "second", "--grants-ahead", "0")
        )
        two = second.turn()
        growth = outside.occupied_slots(daemon.metrics_address) - occupied
        pages = [_pages(first), _pages(second)]
        same = [
            (a["page"], a["address"], b["address"])
            for a, b in zip(*pages, strict=False)
            if a["address"] and b["address"] and (a["slab"], a["slot"]) == (b["slab"], b["slot"])
        ]
        places = [
            outside.places(engine.pid, [row[column] for row in same])
            for engine, column in ((first, 1), (second, 2))
        ]
        physical = sum(
            a is not None and b is not None and (a.inode, a.offset) == (b.inode, b.offset)
            for a, b in zip(*places, strict=True)
        )
        for engine in (first, second):
            engine.do("forget", "forgetting")
            engine.stop()
    wanted = baseline.turns[0]["logits_sha256"]
    equal = one["logits_sha256"] == two["logits_sha256"] == wanted
    differing = two["pages"] - len(same)
    show.report["sharing"] = {
        "shared_slots": len(same),
        "second_prefilled_tokens": two["prefilled_tokens"],
        "pool_growth_pages": growth,
        "logits_equal": equal,
    }
    show.say(
        f"  {len(same)} slots in both page tables, the second engine computed "
        f"{two['prefilled_tokens']} of {two['prompt_tokens']} prompt tokens"
    )
    show.check(
        "sharing",
        "same slots are the same memory (memfd inode and offset)",
        physical == len(same) > 0,
        f"{physical} of {len(same)} by /proc/PID/maps",
    )
    show.check(
        "sharing",
        "the pool grew by the differing pages",
        growth == differing,
        f"{growth} slots, {differing} pages differ",
    )
    show.check(
        "sharing",
        "the second engine skipped that prefill",
        two["prefilled_tokens"] == two["prompt_tokens"] - len(same) * PAGE_TOKENS,
        f"{two['prefilled_tokens']} tokens computed",
    )
    show.check("sharing", "logits equal", equal, two["logits_sha256"][:16])


def _resume(show: Show, daemon: Daemon, baseline: Baseline) -> None:
    last = _kill_in_turn(show, daemon, baseline)
    known = last["position"] + 1  # the killed engine's last token is at this place
    with _open(show, daemon, baseline, "heir", *words("--resume victim --trace")) as heir:
        taken = heir.ready["resumed_tokens"]
        heir.send("turn")
        token: Event = {"position": -1}
        while token["position"] < known:
            token = heir.wait_for("token")
        turns = [heir.wait_for("turn")]
        turns += [heir.turn() for _ in baseline.turns[KILL_TURN + 1 :]]
        heir.do("forget", "forgetting")
        heir.stop()
    equal = all(
        event["generated"] == full["generated"][event["first_row"] :]
        and event["rows"] == full["rows"][event["first_row"] :]
        for event, full in zip(turns, baseline.turns[KILL_TURN:], strict=True)
    )
    recomputed = last["computed_tokens"] - taken + turns[0]["recomputed_tokens"]
    flags = words("--session anew --no-share --follow {events}", events=baseline.events)
    with _open(show, daemon, baseline, "anew", *flags) as anew:
        _ = anew.ready
        full = anew.do(f"replay {known}", "replayed")
        anew.do("forget", "forgetting")
        anew.stop()
    ratio = token["ms"] / full["first_token_ms"]
    show.report["resume"] = {
        "recomputed_tokens": recomputed,
        "tokens_equal": equal,
        "ttft_ratio": ratio,
    }
    show.say(
        f"  killed with {known} tokens, {taken} taken over; first new token after "
        f"{token['ms']:.0f} ms, by full prefill after {full['first_token_ms']:.0f} ms"
    )
    few = recomputed < 2 * PAGE_TOKENS
    show.check("resume", "fewer than 32 tokens computed again", few, f"{recomputed} tokens")
    show.check(
        "resume",
        "tokens and logits of the undisturbed run",
        equal,
        f"from token {turns[0]['first_row']} of turn {KILL_TURN + 1} to the end",
    )
    show.check(
        "resume",
        "time to first token against a full prefill <= 0.3",
        ratio <= 0.3,
        f"{ratio:.3f} ({token['ms']:.0f} / {full['first_token_ms']:.0f} ms)",
    )


def _kill_in_turn(show: Show, daemon: Daemon, baseline: Baseline) -> Event:
    """Kills an engine while it generates; its last token."""
    flags = words("--session victim --no-share --trace")
    with _open(show, daemon, baseline, "victim", *flags) as victim:
        for _ in range(KILL_TURN):
            victim.turn()
        victim.send("turn")
        for _ in range(KILL_TOKEN):
            last = victim.wait_for("token")
        victim.kill()
        # What it said before it died and was not read yet.
        while (event := victim.next_event()) is not None:
            last = event if event["event"] == "token" else last
    deadline = time.monotonic() + WAIT_SECONDS
    while daemon.session("victim")["state"] != "orphaned":
        if time.monotonic() > deadline:
            raise Failed("the daemon does not notice that the engine is dead")
        time.sleep(0.02)
    return last
