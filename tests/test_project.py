"""The files that describe the project agree with each other and with the sources."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

import optirank

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
CONTRIBUTING = "CONTRIBUTING.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Where a path of CONTRIBUTING.md may start.
BASES = (ROOT, ROOT / "src", ROOT / "src" / "optirank", ROOT / "lab" / "src")
# Made by commands, so not in a fresh copy.
MADE = (".venv", "__pycache__", "_build")
# A file with one of the suffixes of the repository, or a folder with its slash.
PATH = re.compile(
    r"[\w.*/-]+\.(?:cff|csv|cu|md|png|py|toml|txt|yaml|yml)|\.?\w[\w.*/-]*/[\w.*/-]*"
)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def without_blocks(page: str) -> str:
    return re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)


def paths_in(page: str) -> list[str]:
    """The words in backquotes that look like paths of the repository."""
    quoted = re.findall(r"`([^`]+)`", without_blocks(page))
    words = {word for code in quoted for word in code.split()}
    return sorted(
        word
        for word in words
        if PATH.fullmatch(word) and not any(part in word for part in MADE)
    )


def exists(path: str) -> bool:
    return any(any(base.glob(path.rstrip("/"))) for base in BASES)


def minor_versions(text: str) -> set[str]:
    return set(re.findall(r"\b3\.\d+\b", text))


def lower_bounds() -> dict[str, str]:
    """The oldest version of each dependency, of extras too, by name."""
    extras = PROJECT["optional-dependencies"]
    requirements = [
        *PROJECT["dependencies"],
        *(one for x in extras.values() for one in x),
    ]
    pairs = (requirement.split(">=") for requirement in requirements)
    return {pair[0].split("[")[0]: pair[1] for pair in pairs if len(pair) == 2}


def product_dependencies() -> set[str]:
    """What a plain install and the extra `all` need."""
    extras = PROJECT["optional-dependencies"]
    (of_all,) = extras["all"]
    names = re.fullmatch(r"optirank\[(.+)\]", of_all)[1].split(",")
    requirements = [*PROJECT["dependencies"], *(r for n in names for r in extras[n])]
    return {re.split(r"[\[>]", requirement)[0] for requirement in requirements}


def test_the_citation_has_the_version_of_the_package():
    cited = re.search(r"^version: (.+)$", text_of("CITATION.cff"), re.MULTILINE)
    assert cited is not None
    assert cited[1].strip('"') == optirank.__version__


def test_the_build_takes_the_version_from_the_package():
    table = tomllib.loads(text_of("pyproject.toml"))
    assert "version" in PROJECT["dynamic"]
    path = ROOT / table["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{optirank.__version__}"' in path.read_text("utf-8")


def test_the_changelog_has_a_section_for_the_version():
    sections = re.findall(r"^## \[(.+?)\]", text_of("CHANGELOG.md"), re.MULTILINE)
    assert sections[0] == optirank.__version__


def test_the_licence_of_the_citation_is_that_of_the_package():
    assert f"license: {PROJECT['license']}\n" in text_of("CITATION.cff")


def test_the_workflow_tests_every_python_of_the_classifiers():
    classifiers = minor_versions(" ".join(PROJECT["classifiers"]))
    matrix = re.search(
        r"python: \[(.+)\]", (WORKFLOWS / "tests.yml").read_text("utf-8")
    )
    assert matrix is not None
    assert minor_versions(matrix[1]) == classifiers
    assert PROJECT["requires-python"] == f">={min(classifiers, key=version_key)}"


def version_key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda p: p.stem)
def test_every_workflow_uses_a_python_of_the_classifiers(path):
    classifiers = minor_versions(" ".join(PROJECT["classifiers"]))
    used = re.findall(r'python-version: "(.+?)"', path.read_text("utf-8"))
    assert set(used) <= classifiers


def test_the_oldest_versions_that_are_tested_are_the_lower_bounds():
    lines = text_of(".github/oldest.txt").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    bounds = lower_bounds()
    needed = product_dependencies()
    assert {"numpy", "scikit-learn", "anndata", "typer", "distributed"} <= needed
    assert needed <= set(tested)
    for name in needed:
        assert Version(tested[name]) == Version(bounds[name]), name


def test_the_install_page_names_extras_that_exist():
    named = re.findall(r"^\| `\[(\w+)\]`", text_of("docs/install.md"), re.MULTILINE)
    assert named
    assert set(named) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", paths_in(text_of(CONTRIBUTING)))
def test_contributing_names_files_that_exist(path):
    assert exists(path), f"{CONTRIBUTING} names {path}, which does not exist"


def test_a_path_that_does_not_exist_is_noticed():
    page = "See `solver/nowhere.py`, `docs/` and `adata.obs`.\n```\n`a/b.py`\n```\n"
    assert paths_in(page) == ["docs/", "solver/nowhere.py"]
    assert not exists("solver/nowhere.py")
    assert exists("docs/")


NAMED = re.findall(r"`([\w.]+)` (?:in|of) `([\w./]+\.py)`", text_of(CONTRIBUTING))


@pytest.mark.parametrize(("name", "path"), NAMED)
def test_contributing_names_what_is_in_the_file(name, path):
    (file,) = (base / path for base in BASES if (base / path).is_file())
    source = file.read_text("utf-8")
    for part in name.split("."):
        assert re.search(rf"\b{part}\b", source), f"{path} has no {name}"


def test_contributing_names_targets_that_the_makefile_has():
    named = set(
        re.findall(r"(?:^|`)make ([a-z][\w-]+)", text_of(CONTRIBUTING), re.MULTILINE)
    )
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    assert {"test", "docs"} <= named
    assert named <= targets
