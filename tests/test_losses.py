"""The loss table: known values, derivatives, Fenchel-Young, extremes, types."""

import pickle

import numpy as np
import pytest

from separatrix.losses import LOSSES, Loss, get_loss

NAMES = list(LOSSES)
CONVEX = [name for name in NAMES if LOSSES[name].convex]
SMOOTH = [name for name in NAMES if LOSSES[name].smooth]
WITH_EPSILON = [name for name in NAMES if LOSSES[name].epsilon is not None]
# where the slope jumps
KINK = {"zero_one": [0.0], "perceptron": [0.0], "hinge": [1.0], "epsilon_insensitive": [-0.1, 0.1]}
# where the curvature jumps
BEND = KINK | {
    "squared_hinge": [1.0],
    "modified_huber": [-1.0, 1.0],
    "huber": [-0.1, 0.1],
    "squared_epsilon_insensitive": [-0.1, 0.1],
}
MARGINS = np.array([-7.3, -2.0, -0.4, 0.0, 0.05, 0.3, 1.0, 1.7, 6.1])


def away_from(places):
    return MARGINS[np.all(np.abs(MARGINS[:, None] - np.array([np.inf, *places])) > 1e-3, axis=1)]


# name: {margin or residual: (value, slope, curvature)}, worked out by hand
KNOWN = {
    "zero_one": {-2: (1, 0, 0), 0: (1, 0, 0), 0.5: (0, 0, 0), 3: (0, 0, 0)},
    "perceptron": {-2: (2, -1, 0), 0: (0, -1, 0), 0.5: (0, 0, 0), 3: (0, 0, 0)},
    "hinge": {-2: (3, -1, 0), 0: (1, -1, 0), 0.5: (0.5, -1, 0), 1: (0, 0, 0), 3: (0, 0, 0)},
    "squared_hinge": {-2: (9, -6, 2), 0: (1, -2, 2), 0.5: (0.25, -1, 2), 1: (0, 0, 0), 3: (0, 0, 0)},
    "logistic": {
        0: (np.log(2), -0.5, 0.25),
        np.log(3): (np.log(4 / 3), -0.25, 3 / 16),
        -np.log(3): (np.log(4), -0.75, 3 / 16),
    },
    "squared": {-2: (9, -6, 2), 0: (1, -2, 2), 1: (0, 0, 2), 3: (4, 4, 2)},
    "modified_huber": {
        -3: (12, -4, 0),
        -1: (4, -4, 2),
        0: (1, -2, 2),
        0.5: (0.25, -1, 2),
        1: (0, 0, 0),
        3: (0, 0, 0),
    },
    "squared_error": {-2: (2, -2, 1), 0: (0, 0, 1), 3: (4.5, 3, 1)},
    "huber": {-2: (0.195, -0.1, 0), -0.05: (0.00125, -0.05, 1), 0: (0, 0, 1), 1: (0.095, 0.1, 0)},
    "epsilon_insensitive": {-2: (1.9, -1, 0), -0.1: (0, 0, 0), 0: (0, 0, 0), 0.1: (0, 0, 0), 3: (2.9, 1, 0)},
    "squared_epsilon_insensitive": {-2: (3.61, -3.8, 2), 0: (0, 0, 0), 0.05: (0, 0, 0), 1.1: (1, 2, 2)},
}

# name: {dual: conjugate}, worked out by hand
KNOWN_CONJUGATES = {
    "perceptron": {-1: 0, -0.5: 0, 0: 0, 0.1: np.inf, -1.1: np.inf},
    "hinge": {-1: -1, -0.5: -0.5, 0: 0, 0.1: np.inf, -1.1: np.inf},
    "squared_hinge": {-4: 0, -2: -1, 0: 0, 0.1: np.inf},
    "logistic": {
        -1: 0,
        -0.5: -np.log(2),
        -0.25: 0.25 * np.log(0.25) + 0.75 * np.log(0.75),
        0: 0,
        0.1: np.inf,
        -1.1: np.inf,
    },
    "squared": {-2: -1, 0: 0, 2: 3},
    "modified_huber": {-4: 0, -2: -1, 0: 0, 0.1: np.inf, -4.1: np.inf},
    "squared_error": {-2: 2, 0: 0, 1: 0.5},
    "huber": {-0.1: 0.005, 0: 0, 0.05: 0.00125, 0.2: np.inf, -0.2: np.inf},
    "epsilon_insensitive": {-1: 0.1, 0: 0, 0.5: 0.05, 1.1: np.inf, -1.1: np.inf},
    "squared_epsilon_insensitive": {-2: 1.2, 0: 0, 1: 0.35},
}


def test_table_names_and_order():
    of_margin = [name for name in NAMES if LOSSES[name].of == "margin"]
    assert of_margin == [
        *("zero_one", "perceptron", "hinge", "squared_hinge", "logistic", "squared", "modified_huber")
    ]
    assert NAMES[len(of_margin) :] == ["squared_error", *WITH_EPSILON]
    assert WITH_EPSILON == ["huber", "epsilon_insensitive", "squared_epsilon_insensitive"]
    assert all(LOSSES[name].name == name for name in NAMES)
    assert NAMES[1:] == CONVEX
    assert [name for name in NAMES if name not in SMOOTH] == list(KINK)


def test_known_rows_cover_the_table():
    assert list(KNOWN) == NAMES
    assert list(KNOWN_CONJUGATES) == CONVEX


@pytest.mark.parametrize("name", NAMES)
def test_known_values(name):
    loss = get_loss(name)
    for margin, (value, slope, curvature) in KNOWN[name].items():
        assert loss.value(margin) == pytest.approx(value, rel=1e-14, abs=1e-15)
        assert loss.slope(margin) == pytest.approx(slope, rel=1e-14, abs=1e-15)
        assert loss.curvature(margin) == pytest.approx(curvature, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("name", CONVEX)
def test_known_conjugates(name):
    for dual, expected in KNOWN_CONJUGATES[name].items():
        assert get_loss(name).conjugate(dual) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_only_the_nonconvex_loss_has_no_conjugate():
    assert [name for name in NAMES if LOSSES[name].conjugate is None] == ["zero_one"]


@pytest.mark.parametrize("name", NAMES)
def test_slope_is_the_numeric_derivative(name):
    loss, step = get_loss(name), 1e-6
    m = away_from(KINK.get(name, []))
    numeric = (loss.value(m + step) - loss.value(m - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(m), numeric, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_is_the_numeric_derivative_of_the_slope(name):
    loss, step = get_loss(name), 1e-6
    m = away_from(BEND.get(name, []))
    numeric = (loss.slope(m + step) - loss.slope(m - step)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(m), numeric, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_slopes_have_no_jump(name):
    m = np.linspace(-3, 3, 6001)
    assert np.abs(np.diff(get_loss(name).slope(m))).max() < 2.1e-3


@pytest.mark.parametrize("name", CONVEX)
def test_fenchel_young_holds_everywhere_and_is_tight_at_the_slope(name):
    loss = get_loss(name)
    m, a = np.linspace(-6, 6, 121)[:, None], np.linspace(-3, 3, 121)[None, :]
    assert (loss.value(m) + loss.conjugate(a) - a * m >= -1e-12).all()
    slope = loss.slope(m)
    np.testing.assert_allclose(loss.value(m) + loss.conjugate(slope), slope * m, atol=1e-12)


@pytest.mark.parametrize("name", CONVEX)
def test_conjugate_is_the_supremum(name):
    loss, m = get_loss(name), np.linspace(-40, 40, 160_001)
    for a in (-0.9, -0.5, -0.1):
        if name == "huber" and a < -0.1:
            continue  # outside the domain
        assert loss.conjugate(a) == pytest.approx(np.max(a * m - loss.value(m)), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_extremes_do_not_overflow(name, dtype):
    loss, m = get_loss(name), np.array([-1e4, 1e4], dtype=dtype)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, slope, curvature = loss.value(m), loss.slope(m), loss.curvature(m)
        tight = None if loss.conjugate is None else loss.conjugate(slope)
    for result in (value, slope, curvature):
        assert np.isfinite(result).all()
    if tight is not None:
        np.testing.assert_allclose(value + tight, slope * m, rtol=1e-6, atol=1e-6)


def test_logistic_tails_keep_their_relative_precision():
    logistic = get_loss("logistic")
    assert logistic.value(50.0) == pytest.approx(np.exp(-50), rel=1e-14)
    assert logistic.slope(50.0) == pytest.approx(-np.exp(-50), rel=1e-14)
    assert logistic.value(-1e4) == 1e4
    assert logistic.slope(-1e4) == -1.0


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (name, function)
        for name in NAMES
        for function in ("value", "slope", "curvature", "conjugate")
        if (name, function) != ("zero_one", "conjugate")
    ],
)
def test_types_and_shapes_are_kept(name, function):
    formula = getattr(get_loss(name), function)
    for dtype, expected in [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.int64, np.float64),
        (np.float16, np.float64),
    ]:
        for shape in [(), (0,), (5,), (2, 3)]:
            given = np.full(shape, -1, dtype=dtype)
            before = given.copy()
            result = formula(given)
            assert result.dtype == expected
            assert result.shape == shape
            np.testing.assert_array_equal(given, before)
    assert formula([-1.0, 0.0]).shape == (2,)


@pytest.mark.parametrize("name", NAMES)
def test_float32_agrees_with_float64(name):
    loss, m = get_loss(name), MARGINS.astype(np.float32)
    for function in (loss.value, loss.slope, loss.curvature):
        np.testing.assert_allclose(function(m), function(m.astype(np.float64)), rtol=1e-6, atol=1e-7)


def test_not_a_number_is_never_a_correct_decision():
    assert get_loss("zero_one").value(np.nan) == 1.0
    assert np.isnan(get_loss("hinge").value(np.nan))


@pytest.mark.parametrize("name", [name for name in NAMES if LOSSES[name].of == "residual"])
def test_losses_of_the_residual_are_even_and_serve_codes(name):
    loss, r = get_loss(name), np.linspace(-3, 3, 61)
    np.testing.assert_array_equal(loss.value(r), loss.value(-r))
    np.testing.assert_array_equal(loss.slope(r), -loss.slope(-r))
    y, f = -1.0, 0.4
    assert loss.value(f - y) == pytest.approx(loss.value(y * f - 1))


@pytest.mark.parametrize("name", NAMES)
def test_another_width(name):
    loss = get_loss(name)
    wide = loss.with_epsilon(0.5)
    if name not in WITH_EPSILON:
        assert wide is loss
        return
    assert wide.epsilon == 0.5
    assert wide != loss
    assert wide.with_epsilon(0.1) == loss == pickle.loads(pickle.dumps(loss))
    m, a = np.linspace(-6, 6, 121)[:, None], np.linspace(-3, 3, 121)[None, :]
    assert (wide.value(m) + wide.conjugate(a) - a * m >= -1e-12).all()
    slope = wide.slope(m)
    np.testing.assert_allclose(wide.value(m) + wide.conjugate(slope), slope * m, atol=1e-12)
    np.testing.assert_allclose(wide.value([-0.5, 0.2]), [0.125, 0.02] if name == "huber" else [0, 0])
    zero_width = loss.with_epsilon(0.0)
    expected = {"huber": 0.0, "epsilon_insensitive": 2.0, "squared_epsilon_insensitive": 4.0}[name]
    assert zero_width.value(-2.0) == expected


def test_losses_are_frozen_values():
    hinge = get_loss("hinge")
    assert isinstance(hinge, Loss)
    with pytest.raises(AttributeError):
        hinge.name = "other"
    with pytest.raises(TypeError):
        LOSSES["own"] = hinge
    assert pickle.loads(pickle.dumps(hinge)) == hinge


@pytest.mark.parametrize("name", ["log", "Hinge", None, 3, []])
def test_unknown_loss_lists_the_choices(name):
    with pytest.raises(ValueError, match=r"unknown loss .*zero_one, perceptron, hinge, squared_hinge"):
        get_loss(name)
