"""All refusals in one table, messages.txt, so that they can be read from top to bottom.

``python tests/test_messages.py`` writes the table anew after a message has changed.
"""

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[1]
TABLE = pathlib.Path(__file__).with_name("messages.txt")
# Words that describe our code instead of the caller's mistake, and words that style rules out.
BANNED = re.compile(
    r"\b((?-i:is none)|are none|(?<!there )is no|(?<!there )are no|nobody|anybody|somebody|whatever|so to "
    r"speak|utterly|simply|obviously|strength|bug|impossible)\b",
    re.I,
)


def words_of(node: ast.expr) -> str:
    """Return a message as its template, with the code of each value in braces."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(words_of(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, right=right):
            return words_of(left) + words_of(right)
        case ast.IfExp(body=body, orelse=other):
            return f"[{words_of(body)}|{words_of(other)}]"
    return f"{{{ast.unparse(node)}}}"


def refusals(path: pathlib.Path) -> Iterator[str]:
    """Yield the templates of a file's `InputError` calls, in its order."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    named = [call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == "InputError"]
    for call in sorted(named, key=lambda call: (call.lineno, call.col_offset)):
        (message,) = call.args
        yield words_of(message).replace("\n", "\\n")


def table() -> str:
    """Return all refusals of the package, a file's under its name."""
    parts = []
    for path in sorted((ROOT / "jaxgeodp").rglob("*.py")):
        found = list(refusals(path))
        if found:
            parts.append("\n".join([str(path.relative_to(ROOT)), *(f"    {line}" for line in found)]))
    return "\n\n".join(parts) + "\n"


MESSAGES = [line.strip() for line in table().splitlines() if line.startswith("    ")]


def test_the_table_holds_every_refusal():
    """After a change: ``python tests/test_messages.py``, and read the lines that changed."""
    assert TABLE.read_text() == table()


def spoken(line: str) -> str:
    """Return a template with an x in place of each value."""
    return re.sub(r"\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "x", line)


RULES = {
    "ends as a sentence": lambda line: re.search(r"[.?x\]]$", spoken(line)),
    "is short": lambda line: len(spoken(line)) <= 330,
    "has no banned word": lambda line: not BANNED.search(spoken(line)),
}


@pytest.mark.parametrize("rule", RULES)
def test_refusals_are_plain_sentences(rule):
    assert len(MESSAGES) > 800
    assert not [line for line in MESSAGES if not RULES[rule](line)]


if __name__ == "__main__":
    TABLE.write_text(table())
