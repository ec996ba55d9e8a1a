"""The drawing of a mechanism's graph, and plots of rates and phases."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.view.graph import layout

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("make", "loops"), [(da.zoo.double_pendulum, 0), (da.zoo.double_four_bar, 2), (da.zoo.bricard, 1), (da.zoo.free_body, 0), (da.zoo.mass_spring, 0)])
def test_every_body_has_a_place_and_every_loop_a_line(make, loops, tmp_path):
    mechanism = make()
    place, _ = layout(mechanism)
    assert len(set(place.values())) == len(mechanism.bodies) + 1
    figure = mechanism.draw_graph(tmp_path / "graph.png")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert f"closes a loop ({loops})" in labels
    assert (tmp_path / "graph.png").stat().st_size > 5000


def test_large_graphs_are_spread_by_their_distances():
    mechanism = da.zoo.n_four_bar(30)
    place, _ = layout(mechanism)
    assert set(place) == set(range(-1, len(mechanism.bodies)))
    apart = [np.hypot(*np.subtract(place[j.parent.index], place[j.child.index])) for j in mechanism.joints]
    everything = [np.hypot(*np.subtract(place[a], place[b])) for a in place for b in place if a < b]
    assert np.mean(apart) < 0.7 * np.mean(everything)
    assert [t for t in mechanism.draw_graph().axes[0].texts if t.get_text()] == []


def test_fill_in_is_counted():
    mechanism = da.zoo.four_bar_chain(8)
    figure = mechanism.draw_graph()
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    blocks = int(labels[0].split("(")[1][:-1])
    assert blocks == 32 + 40 + 2 * (2 * 40 - 1)  # bodies, joints, and an edge of the graph both ways; one joint is on the world


def test_bad_wishes(tmp_path):
    with pytest.raises(da.ModelError, match="no bodies"):
        da.Mechanism("empty").draw_graph()
    with pytest.raises(da.ModelError, match="ending"):
        da.zoo.pendulum().draw_graph(tmp_path / "graph.docx")
    assert not list(tmp_path.iterdir())


def test_rates_and_phases(short_run):
    angular, linear = short_run.plot("velocities").axes
    assert angular.get_ylabel() == "angular rate / rad/s"
    assert linear.get_xlabel() == "time / s"
    np.testing.assert_array_equal(linear.lines[0].get_ydata(), short_run.joint("slide").rates)
    axis, = short_run.plot("phase", names="slide").axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("distance / m", "rate / m/s")
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), short_run.joint("slide").coordinates)
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), short_run.joint("slide").rates)
