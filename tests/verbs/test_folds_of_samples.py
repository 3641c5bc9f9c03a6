"""Folds follow from the samples: their order changes no bit, and copies share one."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest

from example_model import LABEL, as_anndata, reference_set
from optirank import save
from optirank.data.objects import labelled_profiles
from optirank.verbs.training import TrainingOptions
from profiles import train


def trained(adata, label, batch=None, **options):
    profiles, label, batch = labelled_profiles(adata, label, batch)
    return train(profiles, TrainingOptions(label=label, batch=batch, **options))


def noise(n_samples):
    rng = np.random.default_rng(0)
    obs = pd.DataFrame(
        {"kind": np.arange(n_samples) % 2}, index=[f"s{k}" for k in range(n_samples)]
    ).astype(str)
    return anndata.AnnData(rng.normal(size=(n_samples, 200)), obs=obs)


@pytest.mark.parametrize("options", [{}, {"batch": "part"}, {"method": "optirank"}])
def test_the_same_samples_in_any_order_give_the_same_file(options, tmp_path):
    adata = as_anndata(reference_set())
    order = np.random.default_rng(0).permutation(adata.n_obs)
    adata.obs["part"] = [f"p{k % 3}" for k in range(adata.n_obs)]
    files = []
    for number, data in enumerate((adata, adata[order].copy())):
        result = trained(data, LABEL, **options)
        files.append(tmp_path / f"{number}.optirank")
        save(result.model, files[-1])
    first, second = (path.read_bytes() for path in files)
    assert first == second


def test_copies_of_noise_do_not_raise_the_accuracy_and_are_said():
    adata = noise(120)
    thrice = anndata.concat([adata] * 3, index_unique="-")
    result = trained(thrice, "kind")
    assert result.performance.balanced_accuracy < 0.6
    assert any("360 samples have the same order of genes" in n for n in result.notes)
    assert all(
        len(set(folds)) == 1
        for _, folds in result.held_out.groupby(
            result.held_out["sample"].str.split("-").str[0]
        )["fold"]
    )
    once = trained(adata, "kind")
    assert not any("same order of genes" in note for note in once.notes)


def test_a_column_that_looks_like_donors_is_named_with_the_option():
    adata = noise(60)
    adata.obs["PatientID"] = [f"p{k // 10}" for k in range(60)]
    result = trained(adata, "kind", n_genes=10)
    assert any("batch='PatientID'" in n for n in result.notes)
    result = trained(adata, "kind", batch="PatientID", n_genes=10)
    assert not any("looks like that of donors" in n for n in result.notes)
