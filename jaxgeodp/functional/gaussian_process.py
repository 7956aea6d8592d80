"""Private mean curves: the penalised mean plus a Gaussian process with the same kernel, under Gaussian DP."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.compiling import compiled_ahead, like
from jaxgeodp.functional.curves_on_grid import Procedure, curves_on_grid
from jaxgeodp.functional.kernels import Kernel, PerCurve, positive_numbers
from jaxgeodp.functional.rkhs_mean import clipped, curve_count, positive_penalty
from jaxgeodp.mechanisms.mechanism import checked_again, host_array, is_numeric, kind_of_data, record_count
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.clock import work_begins
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, idealized, make_release, to_lists
from jaxgeodp.pytrees import Pytree

# Numbers that a block of draws holds.
_BLOCK = 2**18
# Below, rounding of the mean is not small beside the noise.
_LEAST_SCALE = 1e-9
_CALIBRATIONS = ("tight", "theorem")
_THEOREMS = {
    "tight": "Gaussian process mechanism (Mirshani, Reimherr & Slavkovic 2019; Soto 2024, Theorem 4.3) with the "
    "sensitivity of docs/mathematics.md, Theorem M",
    "theorem": "Soto 2024, section 4: sensitivity 2 norm_bound/(n sqrt(penalty))",
}


_FORMULAS = {
    "tight": "2 norm_bound/n max sqrt(lambda)/(lambda + penalty)",
    "theorem": "2 norm_bound/(n sqrt(penalty))",
}


@dataclasses.dataclass(frozen=True, eq=False)
class FunctionalGaussianMechanism(Pytree, leaves=("kernel", "penalty", "norm_bound", "mu", "template")):
    """J mean curves with Gaussian process noise, each mu_j-GDP, all released together.

    A record is J curves with m samples each. Its deviations from a public template are pulled to the norm bounds (in
    the discrete L2 norm), averaged and smoothed (`RKHSMean`); independent draws of the Gaussian process with the
    kernel's covariance times the scale squared are added, then the template. What is proven is about these J m
    numbers, hence about every curve that is computed from them.

    Args:
        kernel: of the smoothing and of the noise.
        penalty: above 0.
        norm_bound: public bound on the L2 norm of a record's deviation, above 0.
        mu: privacy parameter of each curve, above 0.
        template: public curves (J, m); the noise grows with the distance of the data from it. Zero by default.
        calibration: "tight" (Theorem M of docs/mathematics.md) or "theorem" (the paper's, up to twice the noise).

    kernel.length_scale, penalty, norm_bound and mu are one number for all curves, or arrays of shape (J,).

    Raises:
        ValueError: a parameter is out of range, or two disagree in J.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
        >>> mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, norm_bound=1.0, mu=[0.6, 0.8])
        >>> mechanism.guarantee
        GaussianDP(mu=1.0)
        >>> mechanism.release(np.zeros((100, 2, 80))).value.shape
        (2, 80)
    """

    kernel: Kernel
    penalty: PerCurve
    norm_bound: PerCurve
    mu: PerCurve
    template: np.ndarray | None = None
    calibration: str = "tight"
    _known_curves: int | None = dataclasses.field(init=False, repr=False)

    def __post_init__(self):
        name = type(self).__name__
        if not isinstance(self.kernel, Kernel):
            raise InputError(f"{name}: kernel must be a kernel of jaxgeodp.functional, got {self.kernel!r}.")
        if self.calibration not in _CALIBRATIONS:
            raise InputError(f"{name}: calibration must be 'tight' or 'theorem', got {self.calibration!r}.")
        object.__setattr__(self, "penalty", positive_penalty(name, self.penalty))
        for field in ("norm_bound", "mu"):
            object.__setattr__(self, field, positive_numbers(name, field, getattr(self, field)))
        if self.template is not None:
            template = host_array(name, self.template).astype(float)  # a copy
            template.setflags(write=False)
            if template.ndim != 2 or not np.all(np.isfinite(template)):
                raise InputError(f"{name}: template must be finite curves of shape (J, m), got {template.shape}.")
            self.kernel.check_samples(template.shape[1])
            object.__setattr__(self, "template", template)
        object.__setattr__(self, "_known_curves", self._count())

    def _count(self) -> int | None:
        return curve_count(self.kernel.length_scale, self.penalty, self.norm_bound, self.mu, self.template)

    # Public quantities -------------------------------------------------------------------------------

    @property
    def guarantee(self) -> GaussianDP:
        """Of all curves together: sqrt(sum mu_j^2)-GDP.

        Raises:
            ValueError: no parameter tells how many curves there are; see `guarantee_for`.
        """
        if self._known_curves is None:
            raise InputError(
                "FunctionalGaussianMechanism: how much all curves spend depends on how many there are; give mu as an "
                "array (J,), or call guarantee_for(J)."
            )
        return self.guarantee_for(self._known_curves)

    def guarantee_for(self, curves: int) -> GaussianDP:
        """sqrt(sum mu_j^2)-GDP for this number of curves.

        Raises:
            ValueError: the parameters are for another number.
        """
        positive_integer("FunctionalGaussianMechanism", "the number of curves", curves, 1)
        if self._known_curves not in (None, curves):
            raise InputError(f"FunctionalGaussianMechanism: is for J={self._known_curves} curves, not {curves}.")
        return compose([GaussianDP(mu) for mu in np.broadcast_to(self.mu, curves).tolist()])

    def sensitivity(self, n: int, samples: int | None = None):
        """How far one record moves a curve in the norm of the kernel; a number, or (J,) if a parameter is.

        Args:
            n: number of records.
            samples: m. By default the template's; without one, a bound for every m, which a release at m never exceeds.
        """
        n, samples = record_count(n), self._samples(samples)
        if self.calibration == "theorem":
            factor = self.penalty**-0.5
        elif samples is None:
            factor = self._largest_gain()
        else:
            factor = self.gain(samples)
        return _number(2.0 * self.norm_bound / n * factor)

    def scale(self, n: int, samples: int | None = None):
        """Standard deviation of the noise at each sample, for k(t, t) = 1: sensitivity/mu."""
        return _number(self.sensitivity(n, samples) / self.mu)

    def support(self, n: int) -> None:
        """None: a release may be any curve of the process."""
        record_count(n)

    def _samples(self, samples):
        known = None if self.template is None else self.template.shape[1]
        if samples is None:
            return known
        self.kernel.check_samples(samples)
        if known not in (None, samples):
            raise InputError(f"FunctionalGaussianMechanism: the template has m={known} samples, not {samples}.")
        return samples

    def gain(self, samples: int):
        """How much longer smoothing makes a curve at most, from the L2 norm to that of the kernel; a number, or (J,).

        The largest sqrt(lambda)/(lambda + penalty) of the spectrum on m samples.
        """
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((self.kernel, self.penalty))):
            values = self.kernel.spectrum(samples).eigenvalues
            return jnp.max(jnp.sqrt(values) / (values + jnp.asarray(self.penalty)[..., None]), axis=-1)
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            spectrum = self.kernel.spectrum(samples)
            values, start = (np.asarray(x) for x in (spectrum.eigenvalues, self.kernel.profile(jnp.zeros(()))))
        # Both must be 1; a negative eigenvalue, which has no noise, would make the sum larger.
        total = np.sum(values * spectrum.multiplicity, axis=-1)
        if not (np.all(np.abs(total - 1.0) < 1e-8) and np.all(np.abs(start - 1.0) < 1e-12)):
            raise InputError(
                f"{type(self.kernel).__name__} is not positive definite with k(t, t) = 1 on m={samples} samples: "
                "nothing can be promised; use another kernel."
            )
        largest = np.max(np.sqrt(values) / (values + np.asarray(self.penalty)[..., None]), axis=-1)
        return np.minimum(largest * (1.0 + 1e-12), self._largest_gain())

    def _largest_gain(self):
        """The same for any spectrum: sqrt(x)/(x + penalty) is largest at x = penalty, and x is at most 1."""
        largest = np.minimum(1.0, self.penalty)
        return np.sqrt(largest) / (largest + self.penalty) * (1.0 + 1e-9)  # the floor of the spectrum adds to 1

    # Data meet the mechanism -------------------------------------------------------------------------

    def mean(self, data):
        """The curves around which releases are drawn, (J, m): private."""
        return _center(self, self.records(data))

    def log_density(self, x, data):
        """Unnormalised log density of a release at curves ``x`` (J, m), for data (n, J, m)."""
        data = self.records(data)
        scale = jnp.asarray(self.scale(data.shape[0], data.shape[2]))
        spectrum = self.kernel.spectrum(data.shape[2])
        energies = spectrum.energies(x - _center(self, data))
        return -0.5 * jnp.sum(jnp.sum(energies / spectrum.eigenvalues, axis=-1) / scale**2)

    def simulate(self, key, data, num: int):
        """``num`` independent draws for research, (num, J, m): reproducible from ``key``, hence not private.

        Args:
            key: JAX random key.
            data: (n, J, m), n >= 2; see `release`.
        """
        positive_integer("FunctionalGaussianMechanism", "num", num, 1)
        data = self.records(data)
        return _simulate(self, key, data, jnp.asarray(self.scale(data.shape[0], data.shape[2]), data.dtype), num)

    def release(self, data, ledger: Ledger | None = None, *, numerics: str = "idealized") -> Release:
        """One private release, with randomness from the operating system.

        Args:
            data: (n, J, m), n >= 2. A curve beyond the norm bound is pulled to it, a record with a value that is not
                finite counts as the template; neither is reported.
            ledger: charged before anything is drawn.
            numerics: "idealized", for which the guarantee supposes exact arithmetic, or "grid": whitened curves of
                integers, exact discrete Gaussian noise, the rest post-processing (docs/mathematics.md, Theorem N);
                sum mu_j^2/2-zCDP in place of Gaussian DP.

        Raises:
            ValueError: wrong shape, fewer than two records, m too small for the kernel, another word for ``numerics``,
                or the ledger has not enough left.
        """
        return self.release_as(type(self).__name__, data, ledger, numerics)

    def release_as(self, name: str, data, ledger, numerics, arrange=np.asarray, more=None) -> Release:
        """A release under the ``name`` of the mechanism whose curves these are; otherwise `release`.

        Args:
            name: of the mechanism, for the record and for errors.
            data, ledger, numerics: see `release`.
            arrange: puts the released curves (J, m) in the order of that mechanism's values.
            more: further entries of the record, all of them public.
        """
        on_grid = grid.check_numerics(name, numerics)
        with work_begins(), jax.enable_x64(True):
            checked_again(self)
            data = self.records(host_array(type(self).__name__, data)).astype(float)
            n, curves, samples = data.shape
            sensitivity = self.sensitivity(n, samples)
            scale = _number(sensitivity / self.mu)
            if not np.all(np.isfinite(scale) & (np.asarray(scale) > _LEAST_SCALE)):
                raise InputError(
                    f"FunctionalGaussianMechanism: scales of {np.min(scale):g} to {np.max(scale):g} cannot be drawn "
                    "in double precision; choose other parameters."
                )
            kernel = {"name": type(self.kernel).__name__}
            kernel |= {
                field.name: _plain(getattr(self.kernel, field.name)) for field in dataclasses.fields(self.kernel)
            }
            fallback = np.zeros((curves, samples)) if self.template is None else self.template
            if on_grid:
                how = curves_on_grid(self, like(data))
            else:
                width = jnp.asarray(scale)
                program = compiled_ahead(name, _simulate, self, public_key(), like(data), width, num=1)
                how = Procedure(
                    lambda records: np.asarray(program(self, system_key(), records, width))[0],
                    self.guarantee_for(curves),
                    _THEOREMS[self.calibration],
                    sensitivity,
                    _FORMULAS[self.calibration],
                    scale,
                    {"name": "Gaussian process by its spectrum", "exactness": "exact up to floating point"},
                    idealized("the number of steps does not depend on the data"),
                    {"mu_per_curve": np.broadcast_to(self.mu, curves).tolist()},
                )
            return make_release(
                lambda: arrange(np.asarray(how.draw(data))),
                fallback=arrange(fallback),
                ledger=ledger,
                guarantee=how.guarantee,
                theorem=how.theorem,
                promises=how.promises,
                mechanism=name,
                statistic={"name": "RKHSMean", "penalty": _plain(self.penalty), "kernel": kernel},
                manifold={"name": "L2", "curves": curves, "samples": samples},
                ball={
                    "center": None if self.template is None else to_lists(self.template),
                    "radius": _plain(self.norm_bound),
                    "note": "each curve in the discrete L2 norm",
                },
                n=n,
                sensitivity={
                    "value": _plain(how.sensitivity),
                    "formula": how.formula,
                    "calibration": self.calibration,
                },
                scale=_plain(how.scale),
                support=None,
                sampler=how.sampler,
                note=how.note,
                more=more,
            )

    def records(self, data):
        """The data as floating-point numbers (n, J, m); only shape and dtype are looked at.

        Raises:
            ValueError: see `release`.
        """
        name = type(self).__name__
        data = data if isinstance(data, jax.Array) else host_array(name, data)
        if not is_numeric(data.dtype, "fiu"):
            raise InputError(f"{name}: data must be real numbers, got {kind_of_data(data)}.")
        if data.ndim != 3:
            raise InputError(f"{name}: data must have shape (n, J, m), got {data.shape}.")
        record_count(data.shape[0])
        if self._known_curves not in (None, data.shape[1]) or data.shape[1] == 0:
            raise InputError(f"{name}: is for J={self._known_curves} curves, got data of shape {data.shape}.")
        if self.template is not None and data.shape[2] != self.template.shape[1]:
            raise InputError(
                f"{name}: data have m={data.shape[2]} samples, the template {self.template.shape[1]}; resample one."
            )
        self.kernel.check_samples(data.shape[2])
        data = jnp.asarray(data)
        return data.astype(jnp.promote_types(jnp.result_type(data.dtype, float), jnp.float32))


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return "infinity" if value == math.inf else value


def _number(value):
    """A float for a scalar; arrays and tracers as they are."""
    return float(value) if np.ndim(value) == 0 and not isinstance(value, Tracer) else value


def _template(mechanism, dtype):
    return 0.0 if mechanism.template is None else jnp.asarray(mechanism.template, dtype)


@jax.jit
def _center(mechanism, data):
    return (_template(mechanism, data.dtype) + _deviation(mechanism, data)).astype(data.dtype)


def _deviation(mechanism, data):
    """The smoothed mean deviation from the template."""
    template = _template(mechanism, data.dtype)
    weights = jnp.asarray(mechanism.kernel.weights(data.shape[2]), data.dtype)
    mean = jnp.mean(clipped(data, template, jnp.asarray(mechanism.norm_bound, data.dtype), weights), axis=0)
    # The spectrum that the noise has: no direction may move that has none.
    spectrum = mechanism.kernel.spectrum(data.shape[2])
    values = spectrum.eigenvalues
    smooth = spectrum.apply(values / (values + jnp.asarray(mechanism.penalty)[..., None]), mean)
    return smooth.astype(data.dtype)


@functools.partial(jax.jit, static_argnames="num")
def _simulate(mechanism, key, data, scale, num):
    center, template = _deviation(mechanism, data), _template(mechanism, data.dtype)
    curves, samples = center.shape
    spectrum = mechanism.kernel.spectrum(samples)
    roots = jnp.asarray(jnp.sqrt(spectrum.eigenvalues), data.dtype)
    white = jnp.asarray(1.0 / np.sqrt(mechanism.kernel.weights(samples)), data.dtype) * scale[..., None]

    block = min(num, max(1, _BLOCK // (curves * samples)))
    keys = jax.random.split(key, num)

    def one(j, result):
        start = jnp.minimum(j * block, num - block)  # the last block overlaps the one before
        own = jax.lax.dynamic_slice_in_dim(keys, start, block)
        noise = jax.vmap(lambda key: jax.random.normal(key, center.shape, data.dtype))(own)
        # The template last: at its size rounding would tell records apart that the noise hides.
        draws = template + (center + spectrum.apply(roots, white * noise).astype(data.dtype))
        return jax.lax.dynamic_update_slice_in_dim(result, draws, start, 0)

    return jax.lax.fori_loop(0, math.ceil(num / block), one, jnp.zeros((num, *center.shape), data.dtype))
