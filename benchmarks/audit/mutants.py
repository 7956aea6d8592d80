"""Small mistakes that somebody could have made in a file of Python: the mutants of benchmarks/audit/mutation.py.

Each changes one place of the syntax tree and leaves the rest of the text as it is, so that lines keep their numbers up
to the place. Texts of messages, docstrings, annotations and decorators are left alone, as no test should hold them.
"""

import ast
import copy
import hashlib
import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple


class Mutant(NamedTuple):
    """One change of a file."""

    file: str  #: from the root of the project
    line: int
    first: int  #: line of the statement, which a test runs or not; 0 outside of functions
    last: int
    start: int  #: in bytes
    end: int
    kind: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """Where and what, in one line."""
        return f"{self.file}:{self.line}:{self.start}: {_short(self.before)} -> {_short(self.after)}"

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


# What stands for what. A comparison is moved by its boundary, and turned round.
_COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.MatMult: ast.Mult,
}
_PAIRS = (
    *(("min", "max"), ("minimum", "maximum"), ("floor", "ceil"), ("any", "all"), ("argmin", "argmax")),
    *(("ROUND_FLOOR", "ROUND_CEILING"), ("ROUND_UP", "ROUND_DOWN"), ("sinh", "sin"), ("cosh", "cos")),
    *(("zeros", "ones"), ("log1p", "log"), ("expm1", "exp"), ("erfinv", "erf"), ("ndtr", "ndtri")),
)
_SWAPPED = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
# Not mutated with what they hold: texts, types, and what is only compiled.
_LEFT_ALONE = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Raise, ast.Assert)
_FIELDS_LEFT_ALONE = ("annotation", "returns", "decorator_list")


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """All mutants of a file, in the order of their places.

    Args:
        file: its name.
        source: its content.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, (first, last) in _nodes(ast.parse(source), (0, 0), False):
        for kind, place, after in _changes(node):
            start, end = (starts[row - 1] + column for row, column in _span(place))
            mutant = Mutant(file, place.lineno, first, last, start, end, kind, source[start:end].decode(), after)
            if after != mutant.before:
                found.append(mutant)
    return sorted(dict.fromkeys(found), key=lambda mutant: mutant[4:])


def sample(file: str, source: bytes, number: int, seed: int) -> list[Mutant]:
    """As many mutants of a file at most, at random, but one of each kind before a second of any."""
    found, random_source = mutants_of(file, source), random.Random(f"{seed} {file}")
    kinds: dict[str, list[Mutant]] = {}
    for mutant in random_source.sample(found, len(found)):
        kinds.setdefault(mutant.kind, []).append(mutant)
    rounds = max(map(len, kinds.values()), default=0)
    turns = (own[turn] for turn in range(rounds) for own in kinds.values() if turn < len(own))
    return list(itertools.islice((mutant for mutant in turns if _compiles(mutant.applied(source))), number))


def _nodes(tree, lines, inside) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """Every node that may be changed, with the lines of its statement."""
    inside = inside or isinstance(tree, ast.FunctionDef)
    for name, value in ast.iter_fields(tree):
        if name in _FIELDS_LEFT_ALONE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, _LEFT_ALONE):
                continue
            own = lines
            if isinstance(child, ast.stmt) and inside:
                body = getattr(child, "body", None)
                own = child.lineno, max(child.lineno, body[0].lineno - 1) if body else child.end_lineno or child.lineno
            yield child, own
            yield from _nodes(child, own, inside)


def _changes(node) -> Iterator[tuple[str, ast.AST, str]]:
    """Kind, the node that is replaced, and its new text."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARED[type(operator)]:
                changed = copy.deepcopy(node)
                changed.ops[place] = other()
                yield "comparison", node, _text(changed)
    elif isinstance(node, ast.BinOp):
        changed = copy.deepcopy(node)
        changed.op = _COMPUTED[type(node.op)]()
        yield "operator", node, _text(changed)
        yield "operand", node, _text(node.left)
        yield "operand", node, _text(node.right)
    elif isinstance(node, ast.BoolOp):
        changed = copy.deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and or", node, _text(changed)
        for place in range(len(node.values)):
            left = [copy.deepcopy(value) for k, value in enumerate(node.values) if k != place]
            yield "condition", node, _text(ast.BoolOp(node.op, left) if len(left) > 1 else left[0])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield "sign" if isinstance(node.op, ast.USub) else "not", node, _text(node.operand)
    elif isinstance(node, ast.Constant):
        yield from (("constant", node, text) for text in _numbers(node.value))
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _swapped(node)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "nextafter" and len(node.args) > 1:
        yield "rounding", node.args[1], f"-({ast.unparse(node.args[1])})"
    elif isinstance(node, ast.IfExp):
        yield "branch", node, _text(node.body)
        yield "branch", node, _text(node.orelse)
    elif isinstance(node, ast.If):
        if not isinstance(node.body[-1], ast.Raise):
            yield "branch", node.test, "True"
        yield "check" if isinstance(node.body[-1], ast.Raise) else "branch", node.test, "False"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call", node.value, "None"
    elif isinstance(node, ast.AugAssign):
        changed = copy.deepcopy(node)
        changed.op = _COMPUTED[type(node.op)]()
        yield "operator", node, ast.unparse(changed)
    elif isinstance(node, ast.Return) and node.value is not None and isinstance(node.value, ast.Call):
        for argument in node.value.args[:2]:
            if not isinstance(argument, ast.Starred):
                yield "return", node.value, _text(argument)


def _numbers(value):
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int):
        return dict.fromkeys(map(repr, (value + 1, value - 1, 2 * value, 0)))
    if isinstance(value, float):
        return dict.fromkeys(map(repr, (2.0 * value, 0.5 * value, 0.0, value + 1.0)))
    return []


def _swapped(node):
    """Another name of the same kind: the smaller for the larger, up for down."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    if name in _SWAPPED and isinstance(node.ctx, ast.Load):
        whole = ast.unparse(node)
        yield "name", node, whole[: len(whole) - len(name)] + _SWAPPED[name]


def _text(node):
    return f"({ast.unparse(node)})"


def _span(node):
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _compiles(source):
    try:
        compile(source, "mutant", "exec")
        return True
    except (SyntaxError, ValueError):
        return False


def _short(text):
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:48]}... {hashlib.sha256(line.encode()).hexdigest()[:8]}"
