"""The lint of words: small texts, each with one fault or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from words import docstring_faults, mean_sentence, page_faults

CODE, PAGE = Path("code.py"), Path("docs/page.md")


def _rules(text: str) -> list[tuple[int, str]]:
    """Returns line and rule of each fault of a module's text."""
    return sorted((fault.line, fault.rule) for fault in docstring_faults(CODE, text))


def _function(words: str) -> str:
    """Returns a function with a docstring."""
    return f'def f():\n    """{words}"""\n'


@pytest.mark.parametrize("words", ["Returns it.", "True if it is even.", "Adds one, and returns."])
def test_a_verb_begins_a_functions_docstring(words: str) -> None:
    assert _rules(_function(words)) == []


@pytest.mark.parametrize("words", ["The number of rows.", "Return it.", "Truly even.", ""])
def test_a_functions_docstring_without_a_verb(words: str) -> None:
    assert _rules(_function(words)) == [(2, "verb")]


def test_a_function_without_a_docstring_is_right() -> None:
    assert _rules("def f():\n    return 'What'\n") == []


def test_nouns_begin_other_docstrings() -> None:
    assert _rules('"""Rows."""\nclass A:\n    """Row."""\n    x = 1\n    """Column."""\n') == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""What it is."""\n', 1),
        ('class A:\n    """That of B."""\n', 2),
        ('x = 1\n"""Of a row, the bytes."""\n', 2),
        ('class A:\n    x: int = 1\n    """Whether it is even."""\n', 3),
        ('class A:\n    def f(self):\n        self.x = 1\n        """How many."""\n', 4),
        (_function("There: a list."), 2),
    ],
    ids=["module", "class", "variable", "field", "attribute", "function"],
)
def test_openers(text: str, line: int) -> None:
    assert _rules(text) == [(line, "opener")]


def test_phrases_of_docstrings_and_errors() -> None:
    assert _rules(_function("Returns the verdict.")) == [(2, "phrase")]
    assert _rules('"""Rows."""\nraise ValueError(f"{x} is Left Out")\n') == [(2, "phrase")]
    assert _rules("x = 'the verdict'\n") == []


def test_phrases_of_pages_have_their_line() -> None:
    (fault,) = page_faults(PAGE, "# Page\n\nIt runs.\n\nWhoever asks, gets it.\n")
    assert (fault.line, fault.rule, fault.text) == (5, "phrase", "Whoever")


def test_the_mean_sentence_of_a_page() -> None:
    assert (
        mean_sentence("# A heading of many words\n\nOne two three. Four five six seven eight.") == 4
    )
    assert mean_sentence("One two.\n\n```sh\nnone of these\n```\n\n| nor | these |\n") == 2
    assert mean_sentence("Two items:\n\n- one two\n- three four\n") == 2


def test_long_sentences_and_pages() -> None:
    def rules(text: str) -> list[str]:
        return [fault.rule for fault in page_faults(PAGE, text)]

    assert rules("word " * 22) == []
    assert rules("word " * 23) == ["sentences"]
    assert rules("A short one. " * 401) == ["length"]
