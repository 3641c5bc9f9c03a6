"""Several reference files as one, names of genes out of files, and labels that
look odd.
"""

from __future__ import annotations

import numpy as np
import pytest

from example_model import LABEL, reference_set
from expression_files import write_h5ad
from optirank._util.numbers import PerSample, as_dense
from optirank.data.genes import join_profiles
from optirank.data.objects import profiles_of
from optirank.data.opening import open_sources
from optirank.data.passes import run_pass
from optirank.datasets import DataError
from optirank.verbs import training
from optirank.verbs.gene_lists import genes_of_queries
from optirank.verbs.training import TrainingOptions
from profiles import changed, take_genes, take_samples, train


def run(data, **options):
    given = {"label": LABEL, "n_genes": 20, "n_jobs": 1} | options
    return train(data, TrainingOptions(**given))


@pytest.fixture(scope="module")
def data():
    return reference_set()


def test_odd_labels_and_samples_without_one_are_told(data):
    labels = data.obs[LABEL].astype(object).copy()
    labels.iloc[:4] = None
    labels.iloc[4:10] = "Unknown"
    labels.iloc[10] = "lonely"
    result = run(changed(data, obs=data.obs.assign(**{LABEL: labels})))
    told = " ".join(result.notes)
    assert "'Unknown'" in told
    assert "4 samples" in told
    assert "lonely" in told
    assert "lonely" not in result.model.classes


def test_several_files_are_one_training_set_with_their_common_genes(data, tmp_path):
    order = np.argsort(
        np.arange(150) % 2, kind="stable"
    )  # every class is in both files
    data = take_samples(data, order)
    first = take_genes(take_samples(data, np.arange(75)), data.var_names[:150])
    second = take_genes(
        take_samples(data, np.arange(75, 150)), data.var_names[::-1][:150]
    )
    write_h5ad(first, tmp_path / "first.h5ad")
    write_h5ad(second, tmp_path / "second.h5ad")
    files = [tmp_path / "first.h5ad", tmp_path / "second.h5ad"]
    with open_sources(files, [LABEL]) as (joined, batch):
        assert batch == "file"
        assert joined[1].genes.tolist() == data.var_names[50:150].tolist()
        assert sum(part.n_samples for part in joined) == 150
        rows = np.array([0, 74, 75, 149])
        kept = PerSample(as_dense)
        run_pass(joined, [kept], np.array([3, 1]), size=1, rows=rows)
        np.testing.assert_array_equal(
            kept.result(), data.X.toarray()[rows][:, [53, 51]]
        )
        options = TrainingOptions(label=LABEL, n_genes=20, n_jobs=1, batch=batch)
        result = training.train(joined, options)
    sources = result.model.card.sources
    assert set(sources) == {"first.h5ad", "second.h5ad"}
    assert all(digest.startswith("SHA-256 ") for digest in sources.values())
    assert set(result.held_out["source"]) == {"first", "second"}
    twice = open_sources([files[0], files[0]], [LABEL])
    with pytest.raises(DataError, match="is named twice"), twice:
        pass
    with pytest.raises(DataError, match="genes in common"):
        join_profiles([profiles_of(take_genes(data, [0])), profiles_of(second)])
    assert genes_of_queries(files) == data.var_names[50:150].tolist()


def test_genes_to_use_are_those_of_a_list_or_of_data(tmp_path):
    probes = tmp_path / "probes.txt"
    probes.write_text("# ordered\nCD4\nCD8A\nMS4A1\n")
    assert genes_of_queries([probes]) == ["CD4", "CD8A", "MS4A1"]
    turned = tmp_path / "query.tsv"
    turned.write_text("id\tname\tone\nE8\tCD8A\t1\nE4\tCD4\t0\nE19\tCD19\t3\n")
    assert genes_of_queries([probes, turned]) == ["CD4", "CD8A"]
    table = tmp_path / "query.csv"
    table.write_text("sample,CD4,CD8A\none,1,2\ntwo,3,4\n")
    assert genes_of_queries([probes, table]) == ["CD4", "CD8A"]
