"""The house as its documents say it is: files and symbols they name exist, and one name stands for one thing."""

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES, MOST_TERMS = 400, 40
DOCUMENTS = ("docs/architecture.md", "CONTRIBUTING.md")
FOLDERS = ("apps", "controller", "docs", "hostagent", "mininet-tests", "topology", "contrib")


def tracked(*patterns):
    """The files of the checkout; those of an exported tree without git."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False)
    found = listed.stdout.split() or [str(p.relative_to(ROOT)) for f in FOLDERS for p in (ROOT / f).rglob("*")]
    return [ROOT / name for name in found if any((ROOT / name).match(pattern) for pattern in patterns)]


def defined(path):
    """Every function, class, method and constant that a file defines, by its name; of C, every word."""
    text = path.read_text()
    if path.suffix != ".py":
        return set(re.findall(r"\w+", text))
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def named(document):
    """What a document names as code: file, and symbol or none, of each ``folder/file.py:symbol``."""
    pattern = rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)(?::([\w.]+))?`"
    return re.findall(pattern, (ROOT / document).read_text())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_and_symbol_that_a_document_names_exists(document):
    assert named(document)
    missing = [name for name, _ in named(document) if not (ROOT / name).exists()]
    assert missing == []
    symbols = [(name, part) for name, symbol in named(document) for part in symbol.split(".") if part]
    assert [(name, part) for name, part in symbols if part not in defined(ROOT / name)] == []


def test_the_glossary_is_short_and_says_each_word_once():
    text = (ROOT / "docs/architecture.md").read_text()
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", text, flags=re.MULTILINE)
    assert 20 <= len(terms) <= MOST_TERMS
    assert len(set(terms)) == len(terms)


def test_whatever_only_the_long_tier_tests_is_in_the_table_with_what_guards_it_before():
    table = {ROOT / name for name, _ in named("CONTRIBUTING.md")}
    long = [path for path in tracked("*test_*.py") if "mark.long" in path.read_text() and path != Path(__file__)]
    assert len(long) > 5
    assert [str(path.relative_to(ROOT)) for path in long if not table & {path, path.parent}] == []


def test_make_test_looks_for_tests_wherever_there_are_some_and_runs_none_twice():
    beside, after = (words_of_make(name) for name in ("BESIDE", "AFTER"))
    ignored = {word.removeprefix("--ignore=") for word in beside if word.startswith("--ignore=")}
    assert "mininet-tests/bench" in ignored
    assert "hostagent" not in beside
    assert ignored | {"hostagent"} == {word for word in after if (ROOT / word).exists()}
    looked_in = [ROOT / word for word in (*beside, *after) if (ROOT / word).exists()]
    tests = tracked("*test_*.py")
    assert len(tests) > 200
    assert [path for path in tests if not any(path.is_relative_to(folder) for folder in looked_in)] == []


def words_of_make(name):
    """The words of a variable of the Makefile."""
    asked = [
        "make",
        "--silent",
        "--no-print-directory",
        f"--directory={ROOT}",
        "--eval",
        f"shown: ; @echo '$({name})'",
        "shown",
    ]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()


def test_no_two_public_classes_have_one_name():
    where = defaultdict(list)
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith(("_", "Test")):
                where[node.name].append(str(path.relative_to(ROOT)))
    assert len(where) > 300
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_no_file_of_code_is_longer_than_people_read():
    files = tracked("*.py", "*.c", "*.h", "*.sh")
    assert len(files) > 200
    assert {str(f.relative_to(ROOT)): n for f in files if (n := f.read_text().count("\n")) > MOST_LINES} == {}
