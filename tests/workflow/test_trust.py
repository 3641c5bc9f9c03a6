"""Whether labels can be right as a whole: the alarm, the advice, the words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from optirank.panel.agreement import Agreement
from optirank.workflow.options import PredictOptions
from optirank.workflow.trust import STEPS, Trust
from optirank.workflow.withholding import NOT_KEPT, withhold

CLASSES = ["b cell", "t cell", "monocyte"]


def compared(*agreements, n_genes=2000):
    """An agreement with about these values by label."""
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(len(agreements), n_genes))
    noise = rng.normal(size=reference.shape)
    r = np.array(agreements, dtype=float).reshape(-1, 1)
    query = r * reference + np.sqrt(1 - r**2) * noise
    return Agreement(np.arange(len(agreements)), reference, query)


def trust(*agreements, n_samples=300, likeness=0.9, **options):
    return Trust(CLASSES, n_samples, compared(*agreements, **options), likeness)


def test_little_agreement_is_an_alarm_however_alike_samples_are():
    wrong = trust(0.1, 0.1, 0.1, likeness=1.0)
    assert wrong.alarmed
    (alarm,) = wrong.alarms()
    assert "do not look like the training data" in alarm
    assert f"agreement {wrong.agreement:.2f}" in alarm
    assert not trust(0.7, 0.7, 0.7, likeness=1.0).alarms()


def test_where_agreement_is_in_doubt_likeness_decides():
    assert not trust(0.35, 0.35, likeness=0.8).alarmed
    assert trust(0.35, 0.35, likeness=0.5).alarmed
    assert not trust(0.7, 0.7, likeness=0.3).alarmed


def test_labels_that_cannot_be_checked_say_why_and_likeness_decides():
    one_label = Trust(CLASSES, 40, compared(), 0.4)
    assert one_label.agreement is None
    assert one_label.alarmed
    assert not Trust(CLASSES, 40, compared(), 0.7).alarmed
    (note,) = one_label.notes()
    assert "it takes two labels of at least 3 samples each, of the 40 samples" in note
    few = Trust(CLASSES, 40, compared(n_genes=7), 0.7)
    assert "the query has 7 of those" in few.notes()[0]
    assert "it takes 50" in few.notes()[0]
    assay = Trust(CLASSES, 40, None, 0.7)
    assert "stores none that tell its classes" in assay.notes()[0]
    assert not Trust(CLASSES, 40).alarmed


def test_the_note_says_what_other_queries_with_such_an_agreement_were():
    for value in (-0.2, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
        found = trust(value, value)
        assert found.agreement is not None
        step = next(step for step in STEPS if found.agreement <= step.end)
        note = found.notes()[0]
        assert f"agreement of other genes {found.agreement:.2f}: " in note
        assert f"{step.accuracy:.0%} of the labels" in note
        assert f"{step.wrong:.0%} of those of another" in note


def test_labels_of_low_agreement_are_named_where_there_is_no_alarm():
    found = trust(0.8, 0.1, 0.9)
    assert list(found.low_labels) == ["t cell"]
    assert "1 label agrees little" in found.notes()[1]
    assert "t cell 0." in found.notes()[1]
    assert len(trust(0.8, 0.8, 0.9).notes()) == 1
    assert len(trust(0.1, 0.1, 0.1).notes()) == 1


def test_learning_from_the_query_is_advised_only_where_labels_are_mostly_right():
    assert trust(0.5, 0.5).adapt_helps
    assert not trust(0.27, 0.27).adapt_helps
    assert not trust(0.35, 0.35, likeness=0.5).adapt_helps  # an alarm
    assert not trust(0.5, 0.5, n_samples=40).adapt_helps
    assert not Trust(CLASSES, 300, None, 1.0).adapt_helps


@pytest.fixture
def query():
    """A query whose held-out samples show an error of 5 % at a confidence of 0.8."""
    control = SimpleNamespace(
        target_error=None, at=lambda _: SimpleNamespace(threshold=0.8, reason="shown")
    )
    panel = SimpleNamespace(error_control=control)
    predictor = SimpleNamespace(
        panel=panel, model=SimpleNamespace(panel=panel), left_out=()
    )
    return SimpleNamespace(predictor=predictor, genes_apart=np.full(4, 9))


def test_a_target_error_withholds_all_where_the_query_is_unlike_the_training(query):
    confidence = np.array([0.99, 0.98, 0.97, 0.5])
    asked = PredictOptions(target_error=0.05)
    like = withhold(query, confidence, asked, trust(0.8, 0.8))
    assert (like.reasons == "").tolist() == [True, True, True, False]
    unlike = withhold(query, confidence, asked, trust(0.1, 0.1))
    assert (unlike.reasons == NOT_KEPT).all()
    assert "all labels are withheld" in unlike.notes[-1]
    unchecked = withhold(query, confidence, asked, Trust(CLASSES, 4, None, 0.9))
    assert (unchecked.reasons == like.reasons).all()
    assert "cannot be checked by other genes" in unchecked.notes[-1]


def test_a_threshold_withholds_the_same_whatever_the_query_is_like(query):
    confidence = np.array([0.99, 0.98, 0.97, 0.5])
    for options in (PredictOptions(threshold=0.8), PredictOptions()):
        given = withhold(query, confidence, options, trust(0.1, 0.1))
        assert (given.reasons == withhold(query, confidence, options).reasons).all()
