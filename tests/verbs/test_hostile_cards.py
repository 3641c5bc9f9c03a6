"""A model file with a hostile card is refused when it is opened, or its card can
be shown.
"""

from __future__ import annotations

import io
import json
import random
import zipfile

from example_model import trained_example
from optirank.model import ModelFileError, load
from optirank.model.file import to_bytes
from optirank.verbs.cards import card_tables, model_card

STRANGE = [
    None,
    -1,
    1e308,
    "",
    "x" * 1000,
    [],
    {},
    [1],
    {"a": 1},
    True,
    10**30,
    "\x1b[",
]


def places(value, above=()):
    """The keys that lead to every part of a document."""
    if isinstance(value, dict):
        parts = list(value.items())
    else:
        parts = list(enumerate(value[:2])) if isinstance(value, list) else []
    for key, part in parts:
        yield (*above, key)
        yield from places(part, (*above, key))


def test_a_hostile_card_is_refused_or_shown(tmp_path):
    with zipfile.ZipFile(io.BytesIO(to_bytes(trained_example()[0]))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members["model.json"]
    keys = [place for place in places(json.loads(text)) if place[0] == "card"]
    path = tmp_path / "hostile.optirank"
    rng = random.Random(0)
    outcomes = {"refused": 0, "shown": 0}
    for place in rng.choices(keys, k=80):
        document = json.loads(text)
        part = document
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = rng.choice(STRANGE)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                changed = (
                    json.dumps(document).encode() if name == "model.json" else content
                )
                archive.writestr(name, changed)
        try:
            model = load(path)
        except ModelFileError:
            outcomes["refused"] += 1
        else:
            model_card(model, path)
            card_tables(model)
            outcomes["shown"] += 1
    assert min(outcomes.values()) > 5, outcomes
