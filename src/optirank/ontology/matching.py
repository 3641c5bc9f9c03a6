"""Labels and the terms that they name, by names and synonyms; never by likeness.

Case, spaces, hyphens, underscores, a plural and the order of words make no difference,
and ``CD14+`` is CD14-positive. What is merely like a name, such as a tissue or a tumour
beside a cell type, is shown as near and never taken.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from optirank.ontology.terms import Ontology

_NEAREST = 3  # names that are shown for a label without a term
_LIKE = 0.7  # of difflib: below, most names have nothing in common

# Short names that are used for one type alone; the ontology has none of them
USUAL_NAMES = {
    "CD4 T": "CL:0000624",
    "CD4 T cell": "CL:0000624",
    "CD4+ T cell": "CL:0000624",
    "CD8 T": "CL:0000625",
    "CD8 T cell": "CL:0000625",
    "CD8+ T cell": "CL:0000625",
    "NK": "CL:0000623",
    "pDC": "CL:0000784",
    "cDC": "CL:0000990",
    "CD14 mono": "CL:0001054",
    "CD14 monocyte": "CL:0001054",
    "CD14+ mono": "CL:0001054",
    "CD16 mono": "CL:0002396",
    "CD16 monocyte": "CL:0002396",
    "CD16+ mono": "CL:0002396",
    "CD16+ monocyte": "CL:0002396",
    "FCGR3A mono": "CL:0002396",
    "FCGR3A monocyte": "CL:0002396",
    "FCGR3A+ mono": "CL:0002396",
    "FCGR3A+ monocyte": "CL:0002396",
    "microglia": "CL:0000129",
    "excitatory neuron": "CL:0000679",
    "inhibitory neuron": "CL:0000617",
    "OPC": "CL:0002453",
}


@dataclass(frozen=True)
class LabelTerm:
    """A label and the term that it names.

    Attributes
    ----------
    label : as the data have it.
    id, name : of the term; "" where there is none.
    how : "name", "synonym" or "usual name"; "" where there is none.
    near : ids and names of terms whose names are like the label, where there is none.
    """

    label: str
    id: str = ""
    name: str = ""
    how: str = ""
    near: tuple[tuple[str, str], ...] = ()


def match_labels(labels: Iterable[str], ontology: Ontology) -> list[LabelTerm]:
    """The term of each label, or the terms with the nearest names."""
    names = _Names(ontology)
    return [names.match(label) for label in labels]


def alike(terms: Iterable[LabelTerm]) -> list[tuple[str, ...]]:
    """Groups of labels that look like one class, each sorted.

    They name one term, or differ in case, spaces, hyphens, plurals or the order of
    words alone.
    """
    groups: defaultdict[object, set[str]] = defaultdict(set)
    for term in terms:
        groups[term.id or _in_order(term.label)].add(term.label)
    return [tuple(sorted(group)) for group in groups.values() if len(group) > 1]


class _Names:
    """The names of all terms, as they are compared."""

    def __init__(self, ontology: Ontology) -> None:
        self._terms = ontology.terms
        self._kinds: dict[str, dict[tuple[str, ...], set[str]]] = {
            "name": _index((one.name, term) for term, one in ontology.terms.items()),
            "synonym": _index(
                (synonym, term)
                for term, one in ontology.terms.items()
                if not one.name.endswith(")")  # of one species, as VIP in primates
                for synonym in one.synonyms
            ),
            "usual name": _index(USUAL_NAMES.items()),
        }

    def match(self, label: str) -> LabelTerm:
        """The term that a label names; two terms of one synonym are near ones."""
        key = _in_order(label)
        for how, index in self._kinds.items():
            found = sorted(index.get(key, ()))
            if len(found) == 1:
                return LabelTerm(label, found[0], self._terms[found[0]].name, how)
            if found:
                return LabelTerm(label, near=self._named(found))
        return LabelTerm(label, near=self._named(self._near(label)))

    def _near(self, label: str) -> list[str]:
        """The ids of terms with names like a label's, the nearest first."""
        words = _words(label)
        whole = " ".join(words)
        as_cell = tuple(sorted({*words, "cell"}))
        close = difflib.get_close_matches(whole, self._spelled, _NEAREST, _LIKE)
        found = [
            *(
                term
                for index in self._kinds.values()
                for term in index.get(as_cell, ())
            ),
            *(self._spelled[name] for name in close),
        ]
        return [*dict.fromkeys(found)][:_NEAREST]

    @cached_property
    def _spelled(self) -> Mapping[str, str]:
        """The id of the term of each name and synonym."""
        return {
            " ".join(_words(name)): term
            for term, one in self._terms.items()
            for name in (*one.synonyms, one.name)
        }

    def _named(self, terms: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple((term, self._terms[term].name) for term in terms)


def _index(
    names: Iterable[tuple[str, str]],
) -> dict[tuple[str, ...], set[str]]:
    """The ids of each name, whatever the order of its words."""
    index: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for name, term in names:
        index[_in_order(name)].add(term)
    return dict(index)


def _in_order(name: str) -> tuple[str, ...]:
    return tuple(sorted(_words(name)))


def _words(name: str) -> list[str]:
    """The words of a name: small letters, no plural, CD14+ and CD14- as one word."""
    text = re.sub(r"(?<=\w)\(?\+\)?(?!\w)", " positive ", name.casefold())
    text = re.sub(r"(?<=\w)(\([-−]\)|[-−](?!\w))", " negative ", text)
    text = " ".join(re.findall(r"\w+", text.replace("_", " ")))
    text = re.sub(
        r" (positive|negative|low|high)\b", r"\1", text
    )  # stays with its word
    return [_singular(word) for word in text.split()]


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and word[-2] not in "sui"
    return word[:-1] if is_plural else word
