"""A hundred thousand damaged model files: each is a model or is refused in words."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from fuzzing import ROUNDS, fuzz
from mutations import mutated, with_other_value

from example_model import trained_example
from optirank import TopScoringPairsClassifier
from optirank.model import ModelFileError, load, remember_training, save
from optirank.model.archive import write_arrays, write_zip

pytestmark = pytest.mark.slow
COUNT = 100_000
OF_PAIRS = 10_000


def unpacked(content: bytes) -> tuple[dict, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        document = json.loads(archive.read("model.json"))
        arrays = archive.read("arrays.npz")
    with zipfile.ZipFile(io.BytesIO(arrays)) as archive:
        return document, {name: archive.read(name) for name in archive.namelist()}


def weights():
    return trained_example()[0]


def pairs():
    _, query = trained_example()
    y = query.labels("cell_type").to_numpy()
    model = TopScoringPairsClassifier(3, choose_k="variance").fit(query.X, y)
    return remember_training(model, query.X, y, genes=query.gene_names)


@pytest.mark.parametrize(("make", "count"), [(weights, COUNT), (pairs, OF_PAIRS)])
def test_damaged_model_files_are_read_or_refused(tmp_path, make, count):
    path = tmp_path / "model.optirank"
    save(make(), path)
    good = path.read_bytes()
    document, members = unpacked(good)
    text = json.dumps(document).encode()
    whole = write_arrays({name[:-4]: np.load(io.BytesIO(one)) for name, one in members.items()})

    def damaged(rng) -> bytes:
        kind = rng.random()
        if kind < 0.2:
            return mutated(good, rng)
        if kind < 0.5:
            changed = json.dumps(with_other_value(document, rng)).encode()
            return write_zip({"model.json": changed, "arrays.npz": whole})
        if kind < 0.7:
            return write_zip({"model.json": mutated(text, rng), "arrays.npz": whole})
        if kind < 0.75:
            return write_zip({"model.json": text, "arrays.npz": mutated(whole, rng)})
        name = rng.choice(sorted(members))  # its checksum is right, its content is not
        head = members[name][:128]
        changed = mutated(head, rng) + members[name][128:] if rng.random() < 0.7 else b""
        arrays = write_zip(members | {name: changed or mutated(members[name], rng)})
        return write_zip({"model.json": text, "arrays.npz": arrays})

    def case(rng) -> str:
        path.write_bytes(damaged(rng))
        try:
            load(path)
        except ModelFileError as error:
            words = str(error)
        else:
            return "read"
        assert len(words) < 700 + len(str(path))
        assert words.replace("\n", "").isprintable()
        return "refused"

    for round_ in range(ROUNDS):
        outcome = fuzz(case, count, seed=round_, seconds=2.0, memory=200.0)
        assert not outcome.bad, outcome
        assert outcome.results["refused"] > count // 4
        assert sum(outcome.results.values()) == count
