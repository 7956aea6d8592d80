"""The normal distribution in as many digits as anyone wants, to judge what is computed in double precision."""

import decimal
from decimal import Decimal


def _circle() -> Decimal:
    """pi to 450 digits, by Machin's formula."""
    with decimal.localcontext(prec=460):
        arcs = []
        for number in (5, 239):
            term = total = Decimal(1) / number
            for k in range(1, 340):
                term = -term / number**2
                total += term / (2 * k + 1)
            arcs.append(total)
        return 4 * (4 * arcs[0] - arcs[1])


PI = _circle()


def normal_tail(x: Decimal) -> Decimal:
    """Phi(-x), to a relative 1e-60; errors and digits are those of ``decimal``, whose functions are correctly rounded.

    From 0 to 25 the series of erf, whose cancellation extra digits make up for; beyond, the asymptotic series, which is
    off by its first term left out.
    """
    x = Decimal(x)
    with decimal.localcontext(prec=100 + int(x * x / 2) if abs(x) < 25 else 100, Emax=10**17, Emin=-(10**17)):
        if x < 0:
            return 1 - normal_tail(-x)
        if x < 25:
            term, total, k = x, x, 0
            while abs(term) > Decimal(10) ** (-90 - int(x * x / 2)):
                k += 1
                term = -term * x * x / (2 * k)
                total += term / (2 * k + 1)
            return Decimal("0.5") - total / (2 * PI).sqrt()
        term = total = Decimal(1)
        for k in range(1, 200):
            term = -term * (2 * k - 1) / (x * x)
            total += term
        return total * (-x * x / 2).exp() / (x * (2 * PI).sqrt())


def log_delta(mu: float, epsilon: float) -> Decimal:
    """log of Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), of the decimals as written, to 40 digits."""
    with decimal.localcontext(prec=400, Emax=10**17, Emin=-(10**17)):
        m, e = Decimal(repr(mu)), Decimal(repr(epsilon))
        c = e / m - m / 2
        return (normal_tail(c) - e.exp() * normal_tail(c + m)).ln()
