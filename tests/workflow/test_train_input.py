"""What cannot be trained on is refused before any work, and the message says why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optirank.datasets import DataError
from optirank.workflow.train import train
from training_cases import small, with_obs


@pytest.fixture(scope="module")
def data():
    return small()


def refused(data, match, label="cell_type", **options):
    with pytest.raises(DataError, match=match):
        train(data, label, **options)


def test_bad_input_is_refused_before_any_work(data):
    refused(data, "no column 'nothing'", "nothing")
    refused(data, "one class", "dataset")
    refused(data, "the single value 'example_reference'", batch="dataset")
    refused(data, "no column 'donor'", batch="donor")
    refused(data, "0 of the 2 genes", genes=["A", "B"])
    refused(data, "shares 0 genes with", available=["A", "B"])
    refused(data, "at most 1 genes", max_genes=1)
    refused(data, "none of the reference genes", include=["NOSUCH"])
    refused(data, "leave no gene to weigh", include=["*"], max_genes=10)
    refused(data, "both included and excluded", include=["CD3D"], exclude=["CD*"])
    refused(data, "excluded leave 0", exclude=["*"])
    refused(data, "budget=0", budget=0)
    refused(data, "target error 2", target_error=2)
    refused(with_obs(data, cell_type=np.nan), "no sample is left")


def test_sources_that_share_no_class_are_refused(data):
    kinds = data.obs["cell_type"].astype(str).to_numpy()
    refused(with_obs(data, donor=kinds), "no class is in two sources", batch="donor")
    two = data.select_samples(np.isin(kinds, ["b cell", "t cell"]))
    refused(with_obs(two, donor=two.obs["cell_type"].astype(str)), "no class is", batch="donor")


def test_values_that_are_no_numbers_are_refused(data):
    X = data.X.toarray().astype(float)
    X[2, 3] = np.nan
    refused(replace(data, X=X), "1 value is missing or infinite")


def test_many_classes_of_one_sample_are_no_classes(data):
    refused(with_obs(data, name=data.sample_names), "a classifier needs two classes", "name")
