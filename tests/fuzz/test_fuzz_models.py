"""Damaged model files: each is a model or is refused in words."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from fuzzing import ROUNDS, fuzz
from mutations import mutated, with_other_value

import optirank
from example_model import telling_model
from optirank.datasets import make_unstable_ranks
from optirank.model import ModelFileError

pytestmark = pytest.mark.slow
COUNT = 2_500


def of_the_paper() -> object:
    data = make_unstable_ranks(200, random_state=0)
    return optirank.OptirankClassifier(10).fit(data.X, data.y)


def trained() -> object:
    """A panel with all that a training stores."""
    return telling_model().smaller(10)


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


@pytest.mark.parametrize("make", [of_the_paper, trained])
def test_damaged_model_files_are_read_or_refused(make, tmp_path):
    path = tmp_path / "model.optirank"
    optirank.save(make(), path)
    good = path.read_bytes()
    members = unpacked(good)

    def damaged(rng) -> bytes:
        if rng.random() < 0.2:
            return mutated(good, rng)
        name = rng.choice(sorted(members))  # checksums are right, the content is not
        content = members[name]
        if name.endswith(".json") and rng.random() < 0.6:
            changed = json.dumps(with_other_value(json.loads(content), rng)).encode()
        else:
            changed = mutated(content, rng)
        return packed(members | {name: changed})

    def case(rng) -> str:
        path.write_bytes(damaged(rng))
        try:
            optirank.load(path)
        except ModelFileError as error:
            words = str(error)
        else:
            return "read"
        assert len(words) < 700 + len(str(path))
        assert words.replace("\n", "").isprintable()
        return "refused"

    for round_ in range(ROUNDS):
        outcome = fuzz(case, COUNT, seed=round_, seconds=2.0, memory=200.0)
        assert not outcome.bad, outcome
        assert outcome.results["refused"] > COUNT // 4
        assert sum(outcome.results.values()) == COUNT
