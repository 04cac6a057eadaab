"""The page to play with: its figures are those of the paths, in the file and in a browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from browser import chromium

from structot.datasets.synthetic import clusters
from structot.explorer import KINDS, Clouds, available, page, solve_kind

FIGURES = ("value", "linear", "concentration", "partners", "gap")


def _problem(n: int = 12, m: int = 9):
    data = clusters(n, m, n_classes=3)
    return Clouds(data.cost, data.source_labels, data.target_labels, data.X, data.Y)


def _paths(clouds: Clouds, steps: int = 4):
    labels = clouds.rows, clouds.cols
    return {
        name: solve_kind(KINDS[name], clouds.M, *labels, steps=steps, tol=1e-3)
        for name in available(*labels)
    }


@pytest.fixture(scope="module")
def clouds():
    return _problem()


@pytest.fixture(scope="module")
def paths(clouds):
    return _paths(clouds)


def _data(text: str) -> dict:
    """What the page holds, as a browser would read it."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_figures_and_plans_are_those_of_the_paths(clouds, paths):
    data = _data(page(clouds, paths, title="t"))
    assert [one["name"] for one in data["paths"]] == [KINDS[name].name for name in paths]
    for shown, path in zip(data["paths"], paths.values(), strict=True):
        table = path.table()
        for name in ("dial", *FIGURES):
            assert [stop[name] for stop in shown["stops"]] == table[name].tolist()
        for stop, result in zip(shown["stops"], path, strict=True):
            P = np.zeros(clouds.M.shape)
            for i, flat in enumerate(stop["plan"]):
                P[i, flat[::2]] = flat[1::2]
            shares = result.plan / result.plan.sum(axis=1, keepdims=True)
            # Rounded to ten-thousandths.
            np.testing.assert_allclose(P / 1e4, shares, atol=5.001e-5)


def test_the_first_stop_of_every_kind_is_plain_transport(paths):
    for path in paths.values():
        assert path.dials[0] == 0.0
        assert path[0].value == pytest.approx(path[0].value_linear)
        assert path[0].value == pytest.approx(next(iter(paths.values()))[0].value)


def test_the_page_needs_nothing_else_and_text_cannot_leave_its_place(clouds, paths):
    evil = "</script><script>alert(1)</script>"
    labels = [evil if k == 0 else str(k) for k in clouds.rows]
    named = Clouds(clouds.M, labels, clouds.cols.astype(str), clouds.X, clouds.Y)
    text = page(named, paths, title=evil)
    assert "http:" not in text
    assert "https:" not in text
    assert text.count("<script") == 2
    assert _data(text)["title"] == evil
    assert evil in _data(text)["groups"]


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_points_of_any_dimension_stand_in_the_plane(dimension):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(5, dimension)), rng.normal(size=(4, dimension))
    none = np.full(5, -1), np.full(4, -1)
    places = Clouds(np.ones((5, 4)), X=X, Y=Y).places(none)
    assert [Z.shape for Z in places] == [(5, 2), (4, 2)]
    if dimension == 2:
        np.testing.assert_array_equal(np.concatenate(places), np.concatenate([X, Y]))
    if dimension == 5:  # the plane of largest variance keeps the two largest singular values
        both = np.concatenate([X, Y])
        kept = np.linalg.svd(both - both.mean(axis=0), compute_uv=False)[:2]
        np.testing.assert_allclose(np.linalg.norm(np.concatenate(places), axis=0), kept)


def test_without_points_groups_stand_together_in_two_columns(clouds, paths):
    data = _data(page(Clouds(clouds.M, clouds.rows, clouds.cols), paths, title="t"))
    assert {x for x, _ in data["source"]["points"]} == {0.0}
    assert {x for x, _ in data["target"]["points"]} == {1.0}
    assert not data["distances"]
    assert data["source"]["cuts"] == [4, 8]
    assert sorted(data["target"]["order"]) == list(range(9))


def test_points_of_one_side_only_are_refused(clouds):
    with pytest.raises(ValueError, match="both sides"):
        Clouds(clouds.M, clouds.rows, clouds.cols, clouds.X)


# --------------------------------------------------------------------------------------------------
# In a browser
# --------------------------------------------------------------------------------------------------


def _read(driver) -> dict[str, float]:
    """The figures as a reader sees them."""
    texts = {name: driver.find_element("id", f"figure-{name}").text for name in FIGURES}
    texts["concentration"] = texts["concentration"].replace(" %", "e-2")
    return {name: float(text) for name, text in texts.items()}


def _assert_shown(driver, path, k: int) -> None:
    table, read = path.table(), _read(driver)
    digits = {"value": 5e-4, "linear": 5e-4, "partners": 5e-4, "gap": 5e-2}  # of what is printed
    for name, rounding in digits.items():
        assert read[name] == pytest.approx(table[name][k], rel=rounding, abs=0.0)
    assert read["concentration"] == pytest.approx(table["concentration"][k], abs=5.001e-4)


@pytest.mark.parametrize("width", [1200, 400])
def test_the_slider_shows_the_path_in_a_browser(clouds, paths, tmp_path, width):
    target = tmp_path / "page.html"
    target.write_text(page(clouds, paths, title="Twelve and nine"), encoding="utf-8")
    with chromium(width, dark=width == 400) as driver:
        from selenium.webdriver.common.keys import Keys

        driver.get(target.as_uri())
        assert driver.find_element("tag name", "h1").text == "Twelve and nine"
        html = driver.find_element("tag name", "html")
        assert html.get_attribute("data-theme") == ("dark" if width == 400 else "light")
        dial = driver.find_element("id", "dial")
        buttons = driver.find_elements("css selector", "#structures input")
        for button, path in zip(buttons, paths.values(), strict=True):
            button.send_keys(Keys.SPACE)
            dial.send_keys(Keys.HOME)
            for k in range(len(path)):
                _assert_shown(driver, path, k)
                dial.send_keys(Keys.ARROW_RIGHT)
        wide = "return document.documentElement.scrollWidth - window.innerWidth"
        assert driver.execute_script(wide) <= 0
        driver.find_element("id", "theme").click()
        assert html.get_attribute("data-theme") == ("light" if width == 400 else "dark")
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
        events = (
            json.loads(entry["message"])["message"] for entry in driver.get_log("performance")
        )
        asked = {
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        }
        assert asked == {target.as_uri()}


def test_a_point_names_its_partners_by_keyboard_and_by_pointer(clouds, paths, tmp_path):
    target = tmp_path / "page.html"
    target.write_text(page(clouds, paths, title="t"), encoding="utf-8")
    P = paths["groups"][0].plan  # plain transport, at the left end
    with chromium() as driver:
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        driver.get(target.as_uri())
        driver.find_element("id", "dial").send_keys(Keys.HOME)
        lines, told = (driver.find_element("id", name) for name in ("clouds", "point"))
        lines.send_keys(Keys.ARROW_RIGHT)
        best = int(np.argmax(P[0]))
        share = 100 * P[0, best] / P[0].sum()
        assert told.text.startswith("Source 0 (group 0)")
        assert f"target {best} (group {clouds.cols[best]}) {share:.1f} %" in told.text
        lines.send_keys("t")
        assert told.text.startswith("Target 0 (group 0)")
        lines.send_keys(Keys.ESCAPE)
        assert told.text.startswith("None is chosen")
        # The first row of the matrix is source point 0: its labels are sorted.
        matrix = driver.find_element("id", "matrix")
        top = -matrix.size["height"] // 2 + 3
        ActionChains(driver).move_to_element_with_offset(matrix, 0, top).perform()
        assert told.text.startswith("Source 0 (group 0)")
