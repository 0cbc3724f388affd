"""Words and sentences of the synthetic episodes.

Why: facts need values that are one token each, so that eight of them can be compared by one row of
logits, and everything around them must be talk that holds none of these words.
Invariants: the words of different kinds are disjoint; no sentence here contains one of them.
Not here: where facts stand (generate.py); whether a value is one token (scenario.cc refuses).
"""

from __future__ import annotations

import random

# What a fact can be about, and the values it can have: words of one token in SmolLM2's vocabulary.
KINDS = {
    kind: values.split()
    for kind, values in {
        "door colour": "red blue green yellow purple brown pink grey white black scarlet indigo",
        "badge animal": "falcon wolf tiger rabbit turtle dolphin beaver lion camel whale shark goat"
        " fox bear snake frog deer elephant monkey penguin",
        "backup city": "Paris Berlin Madrid Rome Vienna London Dublin Athens Cairo Tokyo Moscow"
        " Boston Chicago Denver Seattle Toronto Sydney Delhi Prague Stockholm Lisbon Venice",
        "coin metal": "iron copper zinc nickel silver gold tin aluminum brass bronze titanium",
        "boundary tree": "oak maple pine birch cedar willow elm ash spruce walnut bamboo fir",
        "audit month": "January February April June July August September October November",
        "jam fruit": "apple banana orange lemon grape cherry peach pear plum mango strawberry",
        "supplier country": "France Germany Spain Italy Norway Sweden Japan India Canada Brazil"
        " Mexico Egypt Kenya Poland Greece China Peru Chile Finland Ireland Denmark",
        "ceremony instrument": "violin piano guitar flute drum trumpet harp organ",
        "guest drink": "coffee tea milk wine beer juice cocoa lemonade soda cider",
        "night contact": "Anna Peter Maria David Laura Thomas Emma Oliver Sarah Daniel Julia"
        " Martin Alice Robert Helen Simon Clara George Nina Oscar Victor Lucy Henry Edward",
        "manual language": "French German Spanish Italian Russian Chinese Japanese Arabic Latin"
        " Greek Dutch Swedish Hebrew Korean Turkish Portuguese",
        "crate material": "wood glass cotton leather wool silk plastic rubber marble clay linen",
        "witness profession": "teacher doctor lawyer farmer baker painter sailor nurse carpenter"
        " miner judge soldier dentist tailor librarian chemist",
        "locker tool": "hammer drill wrench axe knife shovel ladder rope needle broom bucket",
        "prize furniture": "chair desk bed cabinet bench lamp mirror carpet curtain",
        "escort vehicle": "truck train bicycle boat bus tractor van taxi helicopter ferry tram",
        "meeting building": "castle church museum hospital school hotel theater factory prison"
        " temple barn tower stadium cathedral",
        "festival sport": "tennis football hockey golf boxing cricket rugby basketball chess",
        "menu vegetable": "carrot potato onion tomato cabbage bean corn garlic spinach lettuce"
        " cucumber pumpkin celery",
        "exam subject": "history physics chemistry biology geography art algebra geometry",
        "code planet": "Mars Venus Jupiter Saturn Neptune Uranus Pluto Earth",
    }.items()
}

OWNERS = [
    "Halvern",
    "Tarrow",
    "Quenby",
    "Ostrick",
    "Maldon",
    "Pellworth",
    "Brackley",
    "Swinton",
    "Dunmore",
    "Aldgate",
    "Corvale",
    "Fenmoor",
    "Granlow",
    "Hexley",
    "Inverlee",
    "Jarrow",
    "Kelsing",
    "Lorrimer",
    "Morvane",
    "Netherby",
    "Oxhill",
    "Ravensby",
]

SYSTEM = (
    "You are the assistant of a small operations office. You read reports, call tools and keep"
    " notes, and you answer in short and plain words. Do not guess: say when something is not"
    " known."
)

_THING = [
    "pump",
    "valve",
    "ledger",
    "ticket",
    "folder",
    "panel",
    "sensor",
    "cable",
    "pallet",
    "invoice",
    "schedule",
    "roster",
    "gauge",
    "filter",
    "hatch",
    "notebook",
    "parcel",
    "meter",
    "backlog",
    "form",
    "stamp",
    "counter",
    "queue",
    "gate",
    "lock",
    "checklist",
    "notice",
    "draft",
    "request",
    "summary",
    "delivery",
]
_HOW = [
    "steady",
    "late",
    "quiet",
    "narrow",
    "heavy",
    "light",
    "loose",
    "dusty",
    "spare",
    "worn",
    "clean",
    "complete",
    "doubtful",
    "familiar",
    "recent",
    "minor",
    "regular",
]
_WHERE = [
    "in the north wing",
    "near the loading bay",
    "behind the main hall",
    "on the second floor",
    "at the south gate",
    "by the old entrance",
    "under the stairs",
    "next to the store room",
    "along the east corridor",
    "outside the control room",
]
_WHO = [
    "the caretaker",
    "a visitor",
    "the night crew",
    "the planning group",
    "the front office",
    "the manager",
    "two volunteers",
    "the inspector",
    "a contractor",
    "the day shift",
]
_WHEN = [
    "yesterday",
    "this morning",
    "on Tuesday",
    "last week",
    "before noon",
    "after the break",
    "at closing time",
    "two days ago",
    "on Friday evening",
    "shortly before nine",
]
_DID = [
    "checked",
    "moved",
    "sealed",
    "labelled",
    "counted",
    "repaired",
    "returned",
    "opened",
    "signed",
    "replaced",
    "measured",
    "cleaned",
    "stored",
    "reported",
    "cancelled",
    "approved",
]
_DO = [
    "check",
    "move",
    "seal",
    "label",
    "count",
    "repair",
    "return",
    "open",
    "sign",
    "replace",
    "measure",
    "clean",
    "store",
]

# Sentences by region; {thing} and its like are replaced at random.
_FORMS = {
    "system": (
        "Every {thing} that arrives {where} is {did} before it is {did2}.",
        "Ask {who} when a {thing} seems {how}.",
        "Never {do} a {how} {thing} without a second look.",
    ),
    "user": (
        "Could you {do} the {thing} {where} and tell me whether it is still {how}?",
        "I heard from {who} that the {thing} was {did} {when}, which seems {how} to me.",
        "Please also {do} the {how} {thing}, since {who} asked about it {when}.",
    ),
    "plan": (
        "First {do} the {thing} {where}, then {do2} the {thing2}.",
        "After that ask {who} about the {how} {thing}.",
        "In the end {do} the {thing} and write a {how} report.",
    ),
    "tool_in": ('inspect(item="{thing}", state="{how}", limit={n})',),
    "tool_out": (
        "row {n}: {thing} {where}, {how}, {did} {when}.",
        "row {n}: {thing} {did} by {who}, state {how}, no alarm.",
        "row {n}: {thing} {how}, waits for {who}.",
    ),
    "retrieval": (
        "The {thing} {where} is described as {how} and has been {did} twice since then.",
        "According to the handbook a {how} {thing} is {did} by {who} and not {did2}.",
        "In earlier years the {thing} was {did} {when}, and {who} kept the {thing2}.",
    ),
    "scratchpad": (
        "The {thing} {where} looks {how}, so I will {do} it next.",
        "If {who} {did} the {thing} {when}, the {thing2} can stay as it is.",
        "That leaves the {how} {thing}, which nobody has {did} so far.",
    ),
}

# How many sentences a segment of a region has: in the opening block and in each later turn.
OPENING_SENTENCES = {
    "user": 3,
    "plan": 2,
    "tool_in": 1,
    "tool_out": 4,
    "retrieval": 3,
    "scratchpad": 1,
}
LATER_SENTENCES = {
    "user": 2,
    "tool_in": 1,
    "tool_out": 4,
    "retrieval": 3,
    "scratchpad": 2,
}


def sentence(dice: random.Random, region: str) -> str:
    """One sentence with a blank before it."""
    thing, thing2 = dice.sample(_THING, 2)
    did, did2 = dice.sample(_DID, 2)
    do, do2 = dice.sample(_DO, 2)
    return " " + dice.choice(_FORMS[region]).format(
        thing=thing,
        thing2=thing2,
        how=dice.choice(_HOW),
        where=dice.choice(_WHERE),
        who=dice.choice(_WHO),
        when=dice.choice(_WHEN),
        did=did,
        did2=did2,
        do=do,
        do2=do2,
        n=dice.randint(10, 99),
    )


def padding(dice: random.Random, region: str) -> list[str]:
    """Talk to fill pages up with: more than enough for the gaps of one segment."""
    return [sentence(dice, region) + sentence(dice, region) for _ in range(6)]
