"""Training from data to model: held-out figures that are honest, and every loss is reported."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from optirank import AnovaRankLogisticRegression, OptirankClassifier, load, save
from optirank.datasets import DataError, read_expression
from optirank.model import Predictor, predict_samples
from optirank.tuning.search import search
from optirank.workflow import rounds
from optirank.workflow.finishing import HeldOut, held_out_table
from optirank.workflow.grids import METHODS, UNTUNED, Grid, make_families, make_grids
from optirank.workflow.planning import Clock, compiling_note, duration, fit_into
from optirank.workflow.rounds import make_rounds
from optirank.workflow.train import train as train_workflow
from training_cases import SHORT, SINGLE, noise, small, with_obs


def train(data, label, **options):
    """Train with a single setting unless told otherwise."""
    return train_workflow(data, label, **{"grids": SINGLE, **options})


def plan_all(monkeypatch):
    """Plan for more than there is time for."""
    monkeypatch.setattr("optirank.workflow.train.fit_into", lambda *_: (0, 5))


@pytest.fixture(scope="module")
def data():
    return small()


@pytest.fixture(scope="module")
def result(data):
    said, steps = [], []
    found = train(
        data,
        "cell_type",
        grids=SHORT,
        n_jobs=2,
        target_error=0.2,
        say=said.append,
        progress=lambda done, total: steps.append((done, total)),
    )
    return found, said, steps


def test_every_sample_is_held_out_once_and_most_get_their_label(result, data):
    found, _, _ = result
    assert sorted(found.held_out.index) == sorted(data.sample_names)
    assert found.held_out["fold"].nunique() == 5
    assert found.balanced_accuracy > 0.6
    assert found.balanced_accuracy == pytest.approx(found.by_fold["balanced_accuracy"].mean())


def test_figures_of_the_classes_follow_from_the_held_out_labels(result):
    found, _, _ = result
    table = found.confusion()
    assert table.to_numpy().sum() == len(found.held_out)
    for name, row in found.per_class.iterrows():
        assert row["recall"] == pytest.approx(table.loc[name, name] / table.loc[name].sum())
        assert row["n_samples"] == table.loc[name].sum()


def test_the_model_is_ready_for_use_and_for_its_file(result, data, tmp_path):
    model = result[0].model
    assert isinstance(model, OptirankClassifier)
    save(model, tmp_path / "m.optirank")
    again = load(tmp_path / "m.optirank")
    first, second = (predict_samples(one, data.X, data.gene_names) for one in (model, again))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert again.training_summary_["balanced_accuracy"] == result[0].balanced_accuracy
    assert again.training_summary_["label"] == "cell_type"
    assert again.rejection_.target_error == 0.2
    assert again.calibration_ == model.calibration_
    assert len(again.training_summary_["held_out"]["correct"]) == data.n_samples


def test_the_panel_alone_predicts_the_same(result, data):
    found = result[0]
    part = data.select_genes(found.genes)
    np.testing.assert_allclose(
        predict_samples(found.model, part.X, part.gene_names).scores,
        predict_samples(found.model, data.X, data.gene_names).scores,
    )


def test_what_will_be_done_is_said_first_and_progress_reaches_its_end(result):
    _, said, steps = result
    text = "\n".join(said)
    assert "100 samples, 110 genes, 5 classes" in text
    assert "5 folds, stratified by class" in text
    assert "up to 2 settings are tried" in text
    assert "on 2 threads" in text
    assert steps[-1][0] == steps[-1][1]
    assert steps == sorted(steps)
    assert len({total for _, total in steps}) == 1


def test_the_first_setting_is_left_only_for_a_clearly_better_one(result):
    path = result[0].path
    first, chosen = path.iloc[0], path[path["selected"]].iloc[0]
    margin = path["transfer_score"].max() - first["transfer_score"]
    if margin > 0.02:
        assert chosen["transfer_score"] == path["transfer_score"].max()
    else:
        assert chosen["transfer_score"] == first["transfer_score"]


def test_training_twice_gives_the_same_model(data):
    first, second = (train(data, "cell_type").model for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_genes_are_selected_inside_the_folds():
    found = train(noise(60, 3200), "kind")
    assert found.plan.n_candidates == 1000
    assert abs(found.balanced_accuracy - 0.5) < 0.2  # selected on all samples it would be near 1
    assert any("1000 of 3200 genes were selected" in note for note in found.notes)
    assert found.model.n_features_in_ == 1000


def test_samples_that_cannot_be_used_are_left_out_and_reported(data):
    labels = data.obs["cell_type"].astype(object).to_numpy(copy=True)
    labels[:3] = [np.nan, "", " NA "]
    labels[3:5] = "rare"
    X = data.X.copy().tolil()
    X[10] = 0
    found = train(with_obs(replace(data, X=X.tocsr()), kind=labels), "kind")
    notes = "\n".join(found.notes)
    assert "3 samples are left out: no label in 'kind'" in notes
    assert "1 sample is left out: empty" in notes
    assert "rare (2)" in notes
    assert len(found.held_out) == data.n_samples - 6
    assert "rare" not in found.model.classes_


def test_sources_are_left_out_one_by_one(data):
    found = train(with_obs(data, donor=np.arange(data.n_samples) % 3), "cell_type", batch="donor")
    assert found.by_fold["left_out"].tolist() == ["0", "1", "2"]
    assert (found.held_out.groupby("fold")["source"].nunique() == 1).all()


def test_a_class_of_one_source_is_not_judged_where_it_cannot_be_known(data):
    donor = np.where(data.obs["cell_type"] == "b cell", 0, np.arange(data.n_samples) % 2)
    found = train(with_obs(data, donor=donor), "cell_type", batch="donor")
    assert np.isnan(found.per_class.loc["b cell", "recall"])
    assert any("cannot be learned" in note and "b cell" in note for note in found.notes)
    assert hasattr(found.model, "calibration_")  # one function for all classes: the others suffice


def test_at_most_so_many_genes_are_needed(data):
    found = train(data, "cell_type", max_genes=20, grids=SHORT)
    assert 2 <= len(found.genes) <= 20


def test_only_genes_asked_for_are_used_and_missing_ones_are_named(data):
    wanted = [*data.gene_names[:40], "NOSUCH1"]
    found = train(data, "cell_type", genes=wanted)
    assert set(found.genes) <= set(wanted)
    assert any("NOSUCH1" in note for note in found.notes)


def test_only_genes_are_used_that_the_data_to_be_labelled_have(data):
    there = [name.lower() for name in data.gene_names[:60]]
    found = train(data, "cell_type", available=[*there, "OTHER"])
    assert set(found.model.feature_names_in_) == set(data.gene_names[:60])
    assert any("60 of 110 genes are used" in note for note in found.notes)
    assert any("60 genes were matched in another case" in note for note in found.notes)
    assert not Predictor(found.model, there).bound.match.missing


def test_excluded_genes_are_not_used_at_all(data):
    first = str(data.gene_names[0])
    found = train(data, "cell_type", exclude=[first.lower(), "RP*", "ZZZ*"])
    assert first not in found.model.feature_names_in_
    assert not any(name.startswith("RP") for name in found.model.feature_names_in_)
    assert any("no gene is excluded by 'ZZZ*'" in note for note in found.notes)


def test_included_genes_are_the_reference_set(data, tmp_path):
    names = sorted(str(name) for name in data.gene_names[60:70])
    found = train(data, "cell_type", include=[*names, "NOSUCH1"])
    model = found.model
    assert isinstance(model, AnovaRankLogisticRegression)
    for row in model.reference_:
        assert sorted(model.feature_names_in_[row]) == names
    assert any("NOSUCH1" in note for note in found.notes)
    save(model, tmp_path / "m.optirank")
    assert sorted(load(tmp_path / "m.optirank").reference) == names


def test_a_reference_set_stays_within_a_limit_of_genes(data):
    names = [str(name) for name in data.gene_names[60:70]]
    found = train(data, "cell_type", include=names, max_genes=30)
    assert set(names) <= set(found.genes)
    assert len(found.genes) <= 30


def test_genes_of_one_name_are_summed(data):
    names = data.gene_names.copy()
    names[1] = names[0]
    found = train(replace(data, gene_names=names), "cell_type")
    assert any("their counts are summed" in note for note in found.notes)


@pytest.mark.parametrize("calibrate", [False, True])
def test_labels_follow_the_scores_whether_calibrated_or_not(data, calibrate):
    found = train(data, "cell_type", calibrate=calibrate)
    scores = found.held_out.filter(like="score_").to_numpy()
    expected = found.model.classes_[scores.argmax(axis=1)]
    np.testing.assert_array_equal(found.held_out["predicted"], expected)


def test_an_error_that_cannot_be_kept_is_a_note(monkeypatch):
    def refuse(*_, **__):
        raise ValueError("even the most confident ones are wrong too often")

    monkeypatch.setattr("optirank.workflow.finishing.fit_rejection", refuse)
    found = train(noise(60, 30), "kind", target_error=1e-6)
    assert not hasattr(found.model, "rejection_")
    assert any("no label will be withheld" in note for note in found.notes)


def clock_of(grids, **more):
    options = {
        "first_seconds": 0.2,
        "next_seconds": 0.1,
        "fold_seconds": 1.0,
        "n_problems": 5,
        "n_genes": 50,
        "n_jobs": 1,
        "reference": None,
    }
    return Clock(grids=grids, **options | more)


def test_the_clock_learns_from_what_was_done():
    clock = clock_of(SHORT)
    wide, narrow = (clock.seconds(grid, 5) for grid in SHORT)
    assert narrow < wide
    ratio = clock.fit_seconds(SHORT[0]) / clock.fit_seconds(SHORT[1])
    clock.learn(SHORT[0], 100.0)
    assert clock.fit_seconds(SHORT[0]) == pytest.approx(100)
    assert clock.fit_seconds(SHORT[1]) == pytest.approx(100 / ratio)
    assert 0 < clock.task_seconds(SHORT[0]) < clock.fit_seconds(SHORT[0])
    before = clock.seconds(SHORT[0], 5)
    clock.n_platforms = 2
    assert clock.seconds(SHORT[0], 5) > 2 * before


@pytest.mark.parametrize("method", METHODS)
def test_rounds_go_from_what_helps_most_to_the_whole_grid(method):
    grids = make_grids(method, 5)
    for level, grid in enumerate(grids):
        parts = make_rounds(grids, level)
        settings = [one for part in parts for one in part.settings]
        assert sorted(settings) == sorted(grids[0].settings)
        assert [part.average for part in parts if part.average] == [
            one for one in [grids[0].average] if one
        ]
        default = grid.settings[:1] if grid.average is None else ()
        assert parts[0] == replace(grid, settings=default)
        for part in parts:
            assert len({one[0] for one in part.settings}) <= 1


def test_a_short_time_learns_the_set_on_some_samples_and_the_weights_on_all():
    found = train(noise(420, 40, 3), "kind", budget=0.01)
    assert found.plan.large
    assert found.plan.n_samples == found.model.training_summary_["n_samples"] == 420
    assert len(found.by_fold) == 1
    assert len(found.path) == 1
    assert found.model.shared_reference
    assert (found.model.reference_ == found.model.reference_[0]).all()
    assert any("the weights on all 420" in note for note in found.notes)


@pytest.mark.parametrize("many", [False, True])
def test_of_many_samples_one_set_for_all_classes_comes_before_a_shortened_grid(many, monkeypatch):
    monkeypatch.setattr("optirank.workflow.train.fit_into", lambda *_: (1, 1))
    monkeypatch.setattr("optirank.workflow.train._MANY", 200 if many else 400)
    found = train(noise(300, 20, 3), "kind", grids=SHORT, budget=60)
    assert found.plan.large == many
    assert found.plan.n_folds == 1


def test_two_classes_and_little_time_give_one_score():
    found = train(noise(300, 40), "kind", budget=0.01)
    assert found.plan.large
    assert found.model.coef_.shape == (1, 40)
    assert found.held_out["predicted"].isin(["c0", "c1"]).all()


def test_a_fixed_reference_and_a_short_time_use_fewer_samples():
    data = noise(420, 40)
    found = train(data, "kind", budget=0.01, include=[str(name) for name in data.gene_names[:9]])
    assert found.plan.n_samples == 200
    assert any("the time allowed is short" in note for note in found.notes)


def test_folds_are_given_up_before_settings():
    clock = clock_of(SHORT)
    samples = SimpleNamespace(X=np.zeros((100, 50)), n_platforms=0)
    for n_folds in (5, 3, 2, 1):
        room = clock.seconds(SHORT[0], n_folds)
        assert fit_into(clock, samples, 5, room) == (0, n_folds)
    assert fit_into(clock, samples, 5, clock.seconds(SHORT[1], 1)) == (1, 1)
    assert fit_into(clock, samples, 5, 0.9 * clock.seconds(SHORT[1], 1)) is None


def test_what_outlasts_its_time_is_cut_and_said(data, monkeypatch):
    plan_all(monkeypatch)
    found = train(data, "cell_type", budget=0.01, grids=SHORT)
    assert found.plan.n_settings == 2
    assert len(found.path) == 1
    assert len(found.by_fold) == 1
    assert found.model.training_summary_["n_settings"] == 1
    assert any("a single setting was tried, of 2" in note for note in found.notes)
    assert any("there was time for 1 of 5 folds" in note for note in found.notes)


@pytest.mark.parametrize("method", METHODS)
def test_whatever_is_cut_the_default_is_fitted(data, monkeypatch, method):
    plan_all(monkeypatch)
    grids = make_grids(method, 3)
    found = train(data, "cell_type", budget=0.01, grids=grids)
    assert len(found.path) == 1
    average = grids[0].average
    l1 = grids[-1].settings[0][1] if average is None else tuple(one[1] for one in average.members)
    assert found.settings["l1"] == l1


def test_a_search_that_is_cut_off_keeps_the_settings_of_all_folds(data, monkeypatch):
    calls = []

    def slow_third(families, units, **options):
        calls.append(len(units))
        if len(calls) == 7:  # five folds of the first round, the second, then the third
            options["until"] = 0.0
        return search(families, units, **options)

    monkeypatch.setattr(rounds, "search", slow_third)
    grid = Grid.of((0.1, 0.2, 0.3), (5e-3,), (1e-2,))
    found = train(data, "cell_type", grids=(grid, Grid(grid.settings[:1])), n_jobs=1)
    assert calls == [1] * 5 + [5, 5]
    assert found.path["n_reference"].tolist() == [0.1, 0.2]
    assert len(found.by_fold) == 5
    assert any("2 settings were tried, of 3" in note for note in found.notes)


def test_a_default_that_takes_too_long_gives_way_to_one_set_for_all_classes(monkeypatch):
    plan_all(monkeypatch)
    found = train(noise(300, 20, 3), "kind", grids=SHORT, budget=0.01)
    assert not found.plan.large
    assert found.model.shared_reference
    assert len(found.by_fold) == 1
    assert any("fits took longer than planned" in note for note in found.notes)


def test_time_that_is_left_buys_more_folds(data, monkeypatch):
    monkeypatch.setattr("optirank.workflow.train.fit_into", lambda *_: (0, 2))
    found = train(data, "cell_type", grids=SHORT)
    assert found.plan.n_folds == 2
    assert len(found.by_fold) == 5
    assert len(found.path) == 2


def test_folds_that_do_not_fit_into_memory_together_give_the_same(data, result, monkeypatch):
    monkeypatch.setattr(rounds, "_HELD", 0)
    found = train(data, "cell_type", grids=SHORT, n_jobs=2)
    columns = ["score", "n_genes"]
    np.testing.assert_allclose(found.path[columns], result[0].path[columns])


@pytest.mark.timing
def test_the_time_allowed_is_kept_with_many_classes():
    found = train(noise(600, 400, 12), "kind", budget=20, n_jobs=2, grids=None)
    assert found.timings["total"] < 24


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_grids_are_nested_and_end_with_one_setting(method, n_classes):
    grids = make_grids(method, n_classes)
    for wide, narrow in pairwise(grids):
        assert {*narrow.settings} <= {*wide.settings}
        assert narrow.average in (None, wide.average)
        assert len(narrow) < len(wide)
    assert len(grids[-1]) == 1
    assert sum(len(one.settings()) for one in make_families(grids[0], None)) == len(grids[0])


def test_a_short_time_falls_back_to_the_setting_that_carries_over_best_on_its_own(data):
    found = train(data, "cell_type", budget=0.01, grids=None)
    assert tuple(found.settings.values()) == UNTUNED
    assert found.model.n_platforms == 0


def test_the_default_is_an_average_trained_on_simulated_platforms(data):
    found = train(data, "cell_type", grids=make_grids("auto", 3)[1:], n_folds=2, budget=600)
    assert found.settings["n_reference"] == 0.2
    assert found.settings["l1"] == (1e-3, 3e-3)
    assert found.model.n_platforms == found.plan.n_platforms == 5
    assert any("simulated platforms" in line for line in found.plan.lines())
    assert found.path["transfer_score"].between(0, 1).all()


def test_the_held_out_scores_are_those_of_models_fitted_the_same_way(data):
    found = train(data, "cell_type", grids=make_grids("auto", 3)[1:], n_folds=2, budget=600)
    first = found.held_out[found.held_out["fold"] == 1].index
    inside = ~np.isin(data.sample_names, first)
    rows = [np.flatnonzero(data.sample_names == name)[0] for name in first]
    model = OptirankClassifier(**found.settings, n_platforms=5)
    model.fit(data.X[inside], data.labels("cell_type").to_numpy()[inside])
    scores = model.decision_function(data.X[rows])
    columns = [f"score_{name}" for name in model.classes_]
    kept = found.held_out.loc[first, columns].to_numpy()
    correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(scores.T, kept.T, strict=True)]
    assert min(correlations) > 0.9  # other platforms are drawn, since the unit is all samples'


def test_fewer_genes_are_chosen_where_they_are_preferred(data):
    grids = make_grids("auto", 3)
    accurate = train(data, "cell_type", grids=grids, n_folds=2, budget=600)
    small = train(data, "cell_type", grids=grids, n_folds=2, budget=600, prefer="genes")
    chosen, other = (one.path[one.path["selected"]].iloc[0] for one in (small, accurate))
    assert chosen["n_genes"] <= other["n_genes"]
    assert chosen["transfer_score"] >= other["transfer_score"] - 0.02


def test_rank_lr_needs_every_gene(data):
    found = train(data, "cell_type", method="rank-lr", grids=None, n_folds=2, budget=600)
    assert found.settings["n_reference"] == 1.0
    assert len(found.genes) == data.n_genes


@pytest.mark.parametrize("wrong", [{"method": "forest"}, {"prefer": "speed"}])
def test_unknown_methods_and_preferences_are_refused(data, wrong):
    (name,) = wrong
    with pytest.raises(DataError, match=f"{name}=.*use one of"):
        train(data, "cell_type", **wrong)


@pytest.mark.parametrize(
    ("budget", "ready", "said"), [(5, False, True), (5, True, False), (600, False, False)]
)
def test_a_short_time_and_loops_to_compile_are_said_before(budget, ready, said, monkeypatch):
    monkeypatch.setattr("optirank._compiled.jit.is_ready", lambda loop: ready)
    note = compiling_note(budget)
    assert (note is not None) == said
    assert note is None or "(5 seconds)" in note


def test_of_many_samples_some_are_remembered(data, monkeypatch):
    monkeypatch.setattr("optirank.workflow.finishing.REMEMBERED", 30)
    found = train(data, "cell_type", n_folds=2)
    whole = train(data, "cell_type", n_folds=2)
    assert np.isfinite(found.model.experience_.between).all()
    assert (found.model.coef_ == whole.model.coef_).all()


def test_durations_are_for_people():
    assert [duration(s) for s in (0.2, 40, 600, 9000)] == [
        "a second",
        "40 seconds",
        "10 minutes",
        "2.5 hours",
    ]


def test_leukaemia_on_another_array(data_folder):
    data = read_expression(data_folder / "golub_leukemia.h5ad")
    found = train(data, "cell_type", n_jobs=2)
    assert found.balanced_accuracy > 0.85
    other = read_expression(data_folder / "armstrong_leukemia.h5ad")
    known = other.labels("cell_type").isin(found.model.classes_).to_numpy()
    other = other.select_samples(known)
    labels = Predictor(found.model, other.gene_names).predict(other.X).labels
    truth = other.labels("cell_type").to_numpy()
    assert np.mean([(labels[truth == one] == one).mean() for one in np.unique(truth)]) > 0.8


@pytest.mark.slow
def test_pancreas_with_its_small_classes(data_folder):
    data = read_expression(data_folder / "baron_h1.h5ad")
    rows = np.sort(np.random.default_rng(0).permutation(data.n_samples)[:700])
    found = train(data.select_samples(rows), "cell_type", n_jobs=2, budget=60, grids=None)
    assert found.timings["total"] < 90
    assert found.per_class.loc["beta", "recall"] > 0.9
    assert any("genes were selected" in note for note in found.notes)


def test_the_table_of_held_out_samples_of_many_classes_warns_of_nothing():
    n, classes = 300, np.array([f"c{k:03d}" for k in range(150)])
    y = np.resize(classes, n)
    decisions = (y[:, None] == classes) - 0.5
    scored = HeldOut(rows=np.arange(n), y=y, decisions=decisions, fold=np.zeros(n, dtype=int))
    model = SimpleNamespace(classes_=classes)
    prepared = SimpleNamespace(groups=None, samples=np.arange(n).astype(str))
    table = held_out_table(scored, model, prepared)  # warnings are errors in tests
    assert table.shape == (n, 4 + len(classes))
    assert (table["label"] == table["predicted"]).all()


def test_with_little_time_the_reference_set_stays_within_its_candidates():
    data = noise(300, 40, 3)
    names = [str(name) for name in data.gene_names[:20]]
    found = train(data, "kind", budget=0.01, reference_from=names)
    assert found.plan.large
    model = found.model
    assert set(model.feature_names_in_[model.reference_[0]]) <= set(names)
