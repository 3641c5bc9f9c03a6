"""Small tools for tests of whole tasks: each a script, with an entry of the registry."""

from __future__ import annotations

from pathlib import Path

from optirank.benchmark import tools
from optirank.benchmark.classifiers import CLASSIFIERS, WHOLE, Classifier

_SCRIPT = """
import os, signal, sys, time
sys.path.insert(0, {tools!r})
from harness import run

class Tool:
    version = "fake 1.0"
    def __init__(self, job):
        self.classes = job["classes"]
    def fit(self, train, seed):
        self.n = len(train.genes)
{fit}
    def n_genes(self):
        return self.n
    def predict(self, part):
{predict}

if __name__ == "__main__":
    run(Tool)
"""
FIRST = "return [self.classes[0]] * len(part.labels)"


def fake_tool(
    folder: Path, monkeypatch, name: str, *, fit: str = "pass", predict: str = FIRST
) -> Classifier:
    """A tool whose script has these lines, in the registry until the test ends."""
    script = script_of(folder, name)
    indented = {
        key: "\n".join(" " * 8 + line for line in text.splitlines())
        for key, text in {"fit": fit, "predict": predict}.items()
    }
    script.write_text(_SCRIPT.format(tools=str(Path(tools.__file__).parent), **indented))
    one = Classifier(name=name, words="a tool of a test", experiments=(WHOLE,), script=str(script))
    monkeypatch.setitem(CLASSIFIERS, name, one)
    return one


def script_of(folder: Path, name: str) -> Path:
    """Where the script of a fake tool is."""
    return folder / f"run_{name}.py"
