"""Lint of the words of docstrings, messages and pages: `python tools/words.py [--count] [PATH…]`.

Rules, which `docs/dev-notes/contributing.md` explains:

- A function's docstring begins with a verb in the third person, or with "True if".
- No docstring begins with What, Whether, How, Of, Those, That, Where, Who, Which, There.
- Phrases of `PHRASES`, for which `docs/glossary.md` has the field's term, are nowhere: neither in
  pages, nor in docstrings, nor in messages of errors.
- A user page has at most 22 words a sentence on average, and at most 1,200 words; the user pages
  and the reference have at most 35,000 words together.

`--count` prints the numbers of faults by folder and the words of each page instead of the faults.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Documented: TypeAlias = Function | ast.ClassDef | ast.Module

ROOT = Path(__file__).parents[1]
VERBS = frozenset((Path(__file__).parent / "verbs.txt").read_text().split())

OPENERS = frozenset(
    ["What", "Whether", "How", "Of", "Those", "That", "Where", "Who", "Which", "There"]
)

PHRASES = re.compile(
    r"\b(answers? at once|node by node|sizes come with|one program for all"
    r"|programs? of (its|their) own|verdicts?|multiply-adds|products of bytes"
    r"|(left|right) (numbers|matrix|matrices)|(words|pairs) of (bytes|four bytes)|channels apart"
    r"|channels last, in blocks|met taps"
    r"|settled inputs|(quiet|busy) (machine|one)|beside other work|a quarter of the runs|in turns?"
    r"|(own code|code of (our|its) own)|lets? go of|what is read|what reads|whoever|shall"
    r"|written out|left out)\b",
    re.IGNORECASE,
)

MOST_WORDS_A_SENTENCE = 22
MOST_WORDS_A_PAGE = 1_200
MOST_WORDS = 35_000


class Fault(NamedTuple):
    """Place that breaks a rule."""

    path: Path
    line: int
    rule: str
    text: str


def main() -> int:
    arguments = _arguments()
    paths = [path for path in _tracked() if _is_below(path, arguments.paths)]
    faults = [fault for path in paths for fault in faults_of(path)]
    pages = [path for path in paths if is_user_page(path)]
    if not arguments.paths:
        faults += _of_all_pages(pages)
    if arguments.count:
        _print_counts(faults, pages)
    else:
        for path, line, rule, text in faults:
            print(f"{path}:{line}: {rule}: {text}")
    return 1 if faults else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Checks the words of docstrings and pages.")
    parser.add_argument("--count", action="store_true", help="print numbers of faults")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="below the checkout")
    return parser.parse_args()


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in map(Path, listed.stdout.splitlines()) if (ROOT / path).exists()]


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return not folders or any(path.is_relative_to(folder) for folder in folders)


def is_user_page(path: Path) -> bool:
    """True if a page is for users: laboratory notes and the history of changes are not."""
    return path.suffix == ".md" and path.parts[0] == "docs" and "dev-notes" not in path.parts


def faults_of(path: Path) -> Iterator[Fault]:
    """Yields the faults of a file by its place below the checkout."""
    text = (ROOT / path).read_text()
    if path.suffix == ".py":
        yield from docstring_faults(path, text)
    elif is_user_page(path):
        yield from page_faults(path, text)


def docstring_faults(path: Path, text: str) -> Iterator[Fault]:
    """Yields the faults of docstrings, and of the texts of errors that are raised."""
    tree = ast.parse(text)
    for line, documented, words in docstrings(tree):
        first = words.split(maxsplit=1)[0].rstrip(",.:;") if words.split() else ""
        if first in OPENERS:
            yield Fault(path, line, "opener", _start(words))
        elif isinstance(documented, Function) and not _begins_with_verb(words, first):
            yield Fault(path, line, "verb", _start(words))
        for found in PHRASES.finditer(words):
            yield Fault(path, line, "phrase", found.group())
    for raised in (node for node in ast.walk(tree) if isinstance(node, ast.Raise)):
        for part in ast.walk(raised):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for found in PHRASES.finditer(part.value):
                    yield Fault(path, part.lineno, "phrase", found.group())


def docstrings(tree: ast.Module) -> Iterator[tuple[int, Documented | None, str]]:
    """Yields line, owner and text of each docstring; the owner of a variable's is `None`.

    A variable is one of a module or a class, or an attribute that a method sets.
    """
    for node in ast.walk(tree):
        if not isinstance(node, Documented):
            continue
        if (words := ast.get_docstring(node)) is not None:
            yield node.body[0].lineno, node, words
        for before, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, ast.Assign | ast.AnnAssign) and (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                yield after.lineno, None, after.value.value


def _begins_with_verb(words: str, first: str) -> bool:
    return words.startswith("True if ") or first in VERBS


def _start(words: str) -> str:
    return words.split("\n", maxsplit=1)[0][:80]


def page_faults(path: Path, text: str) -> Iterator[Fault]:
    """Yields the faults of a page."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in PHRASES.finditer(line):
            yield Fault(path, number, "phrase", found.group())
    if (mean := mean_sentence(text)) > MOST_WORDS_A_SENTENCE:
        yield Fault(path, 1, "sentences", f"{mean:.1f} words on average")
    if (words := len(prose(text).split())) > MOST_WORDS_A_PAGE:
        yield Fault(path, 1, "length", f"{words} words")


def prose(text: str) -> str:
    """Returns a page without blocks of code and tables."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^\s*(\||<|!\[).*$", "", text, flags=re.MULTILINE)


def mean_sentence(text: str) -> float:
    """Returns the mean number of words of a page's sentences; headings are none."""
    text = re.sub(r"^#.*$", "", prose(text), flags=re.MULTILINE)
    text = re.sub(r"^\s*([-*]|\d+\.)\s", "\n\n", text, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n", text)
    sentences = [
        one for block in blocks for one in re.split(r"(?<=[.!?])\s+", block) if one.split()
    ]
    return sum(len(one.split()) for one in sentences) / max(1, len(sentences))


def _of_all_pages(pages: Iterable[Path]) -> Iterator[Fault]:
    total = sum(len((ROOT / page).read_text().split()) for page in pages)
    if total > MOST_WORDS:
        yield Fault(Path("docs"), 1, "length", f"{total} words in all, {MOST_WORDS} at most")


def _print_counts(faults: Sequence[Fault], pages: Sequence[Path]) -> None:
    counts = Counter((fault.rule, "/".join(fault.path.parts[:3][:-1])) for fault in faults)
    for (rule, folder), count in sorted(counts.items()):
        print(f"{rule:10} {count:5}  {folder}")
    print("| page | words | words a sentence |\n| --- | ---: | ---: |")
    for page in pages:
        text = (ROOT / page).read_text()
        print(f"| {page.name} | {len(text.split())} | {mean_sentence(text):.1f} |")


if __name__ == "__main__":
    sys.exit(main())
