"""Functions of one record that see one record also when JAX works on many at a time.

`jax.vmap` turns a function of one record into a function of all, primitive by primitive. Most primitives treat each
record as if it were alone. Some do not: a function of `jax.custom_batching.custom_vmap` is handed all records at once,
a callback or foreign function gets them in one array, and random numbers of the generator "rbg" come from the first
record's key. A bound per record says nothing about those. So a function is traced once, on the shapes of one record,
and runs from that trace, in which it can find no record but its own; what is not known to keep records apart is
refused, which includes all primitives that JAX does not publish in `jax.lax` or `jax.extend.core.primitives`, but for
those of a few public functions.
"""

import functools
from collections.abc import Callable, Iterator

import jax
import jax.extend
import jax.extend.core.primitives
import jax.numpy as jnp

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.derivatives import riemannian_gradient
from jaxgeodp.manifolds.manifold import Manifold

# Of JAX's public primitives, those that exchange numbers between lanes, or whose random numbers depend on other lanes.
_ACROSS_LANES = frozenset(
    "all_gather all_to_all axis_index pmax pmin ppermute psum ragged_all_to_all rng_bit_generator rng_uniform "
    "xla_pmap".split()
)
_MODULES = (jax.lax, jax.lax.linalg, jax.extend.core.primitives)


def of_one_record(name: str, function: Callable, *arguments) -> Callable:
    """``function`` from one trace of it, in which it sees one record; one array in, one array out.

    Args:
        name: what the function is, for errors.
        function: of arrays.
        arguments: arrays, or anything with a shape and a dtype: of one record, and what else the function takes.

    Raises:
        ValueError: it calls what may look at other records, or has side effects.
    """
    shapes = [jax.ShapeDtypeStruct(argument.shape, argument.dtype) for argument in arguments]
    trace = jax.make_jaxpr(function)(*shapes)
    _check_trace(name, trace)
    run = jax.extend.core.jaxpr_as_fun(trace)
    return lambda *arrays: run(*arrays)[0]


def check_sees_one_record(loss: Callable, manifold: Manifold, datum_shape, dtypes) -> None:
    """Check a loss ``(x, datum) -> real`` and its gradient in x, on shapes only.

    Args:
        loss: pure JAX, differentiable in x.
        manifold: of which x is a point.
        datum_shape: shape of one datum.
        dtypes: of x and of a datum.

    Raises:
        ValueError: the value is not one real number, or `of_one_record` refuses the loss or its gradient.
    """
    x, datum = (jax.ShapeDtypeStruct(*pair) for pair in zip((manifold.shape, tuple(datum_shape)), dtypes, strict=True))
    of_one_record("the loss", loss, x, datum)
    value = jax.eval_shape(loss, x, datum)
    if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise InputError("a statistic's loss must return one real number for a point and a datum; sum over other axes.")
    of_one_record("the loss", lambda p, d: riemannian_gradient(manifold, lambda y: loss(y, d))(p), x, datum)


def _check_trace(name, trace):
    public, own_key = _primitives_that_keep_records_apart(), _threefry_key()
    for equation in _equations(trace.jaxpr):
        primitive = equation.primitive
        if id(primitive) not in public:
            raise InputError(
                f"{name} calls {primitive.name}, which may combine several records, so that no bound per record "
                "holds; use functions of jax.numpy and jax.lax, without callbacks, foreign functions, collectives and "
                "custom_vmap."
            )
        if equation.effects:
            raise InputError(f"{name} has side effects ({primitive.name}); it must be a pure function.")
        for variable in (*equation.invars, *equation.outvars):
            dtype = getattr(variable.aval, "dtype", None)
            if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.extended) and dtype != own_key:
                raise InputError(
                    f"{name} uses random keys of type {dtype}, whose numbers depend on other records; use "
                    "jax.random.key(seed, impl='threefry2x32')."
                )
    if trace.effects:
        raise InputError(f"{name} has side effects; it must be a pure function.")


def _equations(jaxpr) -> Iterator:
    """All equations of a jaxpr and of those inside."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            yield from _equations_inside(value)


def _equations_inside(value) -> Iterator:
    if hasattr(value, "eqns"):
        yield from _equations(value)
    elif isinstance(value, dict):
        yield from _equations_inside(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _equations_inside(part)


@functools.cache
def _primitives_that_keep_records_apart() -> frozenset[int]:
    """Identities, as another package may give its own primitive a name of JAX's."""
    published = [value for module in _MODULES for value in vars(module).values()]
    primitives = [value for value in published if isinstance(value, jax.extend.core.Primitive)]
    primitives += [equation.primitive for equation in _equations(jax.make_jaxpr(_further)().jaxpr)]
    return frozenset(id(primitive) for primitive in primitives if primitive.name not in _ACROSS_LANES)


def _further():
    """Public functions with primitives that are not: choice by platform, recomputation, keys of the older kind."""
    number = jax.lax.platform_dependent(1.0, cpu=jax.checkpoint(jnp.sin), default=jnp.cos)
    return number + jax.random.uniform(jax.random.PRNGKey(0, impl="threefry2x32"))


def _threefry_key():
    return jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32")).dtype
