"""How programs are compiled: before any record is looked at, so that what can be refused is refused then; or soon."""

import contextlib
import dataclasses
import math
from typing import Any

import jax
import jaxlib.version
import numpy as np

from jaxgeodp.blocks import blocks_of, padded, rows_at_once
from jaxgeodp.checks import InputError
from jaxgeodp.traced_programs import traced_program

#: For `jax.jit(compiler_options=...)`, of programs that run once and whose last bits nobody compares: about half
#: the time to compile, up to four times the time to run. The emitters of loops can be chosen in JAX 0.8 and 0.9 only.
COMPILED_SOON: dict[str, bool | int | str] = {"xla_backend_optimization_level": 0}
if jaxlib.version.__version__.startswith(("0.8.", "0.9.")):
    COMPILED_SOON["xla_cpu_use_fusion_emitters"] = False


def fast_compile() -> dict[str, bool | int | str]:
    """Return options for `jax.jit(compiler_options=...)` that compile in about half the time or less.

    For programs that run briefly: such a program takes up to four times as long, and may differ in the last digits.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxgeodp import SPD, fast_compile, frechet_mean
        >>> mean = jax.jit(lambda points: frechet_mean(SPD(2), points), compiler_options=fast_compile())
        >>> mean(jnp.stack([jnp.eye(2), 4.0 * jnp.eye(2)])).round(3).tolist()
        [[2.0, 0.0], [0.0, 2.0]]
    """
    return dict(COMPILED_SOON)


# A program that goes through more numbers runs longer than it takes to compile.
_MANY = 10**5


def compiled_ahead(owner: str, function, *arguments, passes: int = 1, **static):
    """Return the compiled program of a jitted function for arguments of these shapes.

    Args:
        owner: whom a refusal names.
        function: made by `jax.jit`.
        arguments: public arrays and pytrees, or what `like` makes of private ones.
        passes: how often it goes through them, where that is public: a program of little work is compiled soon.
        static: arguments that are part of the program.

    Returns:
        A function of arguments like ``arguments``.

    Raises:
        ValueError: the function cannot be traced for these shapes, such as a loss of a user.
    """
    with refused_in_words(owner):
        options = options_for(arguments, passes)
        program = traced_program(function, arguments, static, options)
        return Program(program or function.lower(*arguments, **static).compile(compiler_options=options))


def options_for(arguments, passes: int) -> dict[str, bool | int | str] | None:
    """Return compiler options for a program that goes ``passes`` times through its arguments, arrays or pytrees."""
    many = passes * sum(math.prod(getattr(leaf, "shape", ())) for leaf in jax.tree.leaves(arguments)) > _MANY
    return None if many else COMPILED_SOON


def called(function, *arguments, options: dict[str, bool | int | str] | None, **static):
    """Return the result of a jitted function, by a program that was traced before, where such are kept.

    Args:
        function: made by `jax.jit`.
        arguments: of it.
        options: of the compiler, for a program that is kept.
        static: arguments that are part of the program, by their names.
    """
    program = traced_program(function, arguments, static, options)
    return function(*arguments, **static) if program is None else Program(program)(*arguments)


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program, called with arrays that JAX has not met (`seen_anew`)."""

    compiled: Any

    def __call__(self, *arguments):
        """Return the program's results."""
        return self.compiled(*jax.tree.map(seen_anew, arguments))

    @property
    def out_info(self):
        """Return shapes and types of the results."""
        return self.compiled.out_info


def seen_anew(array):
    """Return a fresh view of a NumPy array; other values unchanged.

    JAX keeps the rounded copy of an array of NumPy that is a constant in a loop of a program in single precision, and
    hands it out for the same object in double precision, too, where programs then fail (jax 0.9 and 0.11). Whatever is
    a user's, or may have been a constant of a user's program, goes through here before it meets double precision.
    """
    return array.view() if type(array) is np.ndarray else array


def compiled_in_blocks(owner: str, function, *arguments):
    """Compile a function of records, the last argument, that gives one result for each, block by block.

    All blocks have one shape, whatever the number of records: there is one program for all numbers, and what a record's
    result is depends neither on how many there are nor on how they are divided, but for last digits where the program
    has matrix products of some shapes, whose rows are not all computed alike.

    Args:
        owner, function, arguments: see `compiled_ahead`.

    Returns:
        A generator function of arguments like ``arguments``, without static ones: the results of blocks, in NumPy. The
        records may be an array, or `Blocks`.
    """
    *public, records = arguments
    rows = rows_at_once(records.shape[1:])
    block = jax.ShapeDtypeStruct((rows, *records.shape[1:]), records.dtype)
    program = compiled_ahead(owner, function, *public, block, passes=_MANY)

    def results(*given):
        *own, data = given
        for own_records in blocks_of(data, rows):
            yield np.asarray(program(*own, padded(own_records, rows)))[: len(own_records)]

    return results


@contextlib.contextmanager
def refused_in_words(owner: str):
    """Turn what a user's function raises while it is traced, on shapes alone, into one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # its words hold nothing private
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise InputError(
            f"{owner}: cannot be computed for data of this shape ({type(error).__name__}: {reason})."
        ) from error


def like(array) -> jax.ShapeDtypeStruct:
    """Return shape, type and placement of a private array: all that compilation may see of it."""
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=getattr(array, "sharding", None))
