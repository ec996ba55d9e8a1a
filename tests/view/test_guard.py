"""Who may see the live view, and who may not."""
from __future__ import annotations

import http.client
import threading

import pytest

import dalembert as da
from dalembert.view.guard import Guard
from dalembert.view.stage import literal

viser = pytest.importorskip("viser")
websockets = pytest.importorskip("websockets")


@pytest.fixture(scope="module")
def viewer(short_run):
    found = short_run.view(port=18111, block=False)
    yield found
    found.stop()


def ask(viewer, path: str, **headers: str) -> int:
    """The status of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server.get_port(), timeout=30)
    try:
        connection.putrequest("GET", path, skip_host=True)
        for name, value in ({"Host": f"127.0.0.1:{viewer.server.get_port()}"} | headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_the_page_needs_its_address(viewer):
    port, token = viewer.server.get_port(), viewer.stage.guard.token
    assert viewer.url == f"http://127.0.0.1:{port}/{token}/"
    assert ask(viewer, f"/{token}/") == 200
    assert ask(viewer, f"/{token}/index.html?websocket=x") == 200
    assert ask(viewer, f"/{token}/", Host=f"localhost:{port}", Origin=f"http://localhost:{port}") == 200
    assert ask(viewer, f"/{token}/", Host="localhost:9999") == 200  # through a forwarded port
    for path in ("/", "/index.html", f"/{token[:-1]}/", f"/{token}x/", f"/{token.swapcase()}/", f"/?{token}", f"//x/{token}/"):
        assert ask(viewer, path) == 403, path


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"Host": "evil.example:18111"}, {"Host": "127.0.0.1.evil.example"}, {"Host": ""}, {"Host": "localhost:evil"},
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://127.0.0.1:18111"}, {"Origin": "http://localhost:3000"}, {"Origin": "http://127.0.0.1"},
], ids=str)
def test_foreign_pages_are_refused(viewer, headers):
    assert ask(viewer, f"/{viewer.stage.guard.token}/", **headers) == 403


def connect(viewer, path: str, **more) -> object:
    from websockets.sync.client import connect as open_socket

    address = f"ws://127.0.0.1:{viewer.server.get_port()}{path}"
    spoken = [websockets.Subprotocol(f"viser-v{viser.__version__}")]
    return open_socket(address, subprotocols=spoken, open_timeout=30, max_size=None, **more)


def test_sockets_need_it_too(viewer):
    """The page's own script asks for the address of the page, without the last slash."""
    token, port = viewer.stage.guard.token, viewer.server.get_port()
    with connect(viewer, f"/{token}", origin=f"http://127.0.0.1:{port}") as socket:  # type: ignore[attr-defined]
        assert len(socket.recv(timeout=30)) > 0
    for path, more in (("/", {}), (f"/{token}", {"origin": "http://evil.example"}), (f"/{token}", {"additional_headers": {"Origin": "null"}})):
        with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
            connect(viewer, path, **more)


def test_every_page_has_a_secret_of_its_own():
    assert len({Guard().token for _ in range(100)}) == 100
    assert len(Guard().token) >= 24


@pytest.mark.parametrize("port", [-1, 70000, None, "http", 80.5, True])
def test_ports_that_do_not_exist_are_refused(short_run, port):
    """They used to be tried for ever."""
    simulation = da.Simulation(da.zoo.pendulum(1), da.Variational(dt=0.01))
    for show in (short_run.view, simulation.view):
        with pytest.raises(da.ModelError, match="whole number from 0 to 65535"):
            show(port=port, block=False)


def test_a_viser_that_starts_otherwise_is_not_used(short_run, monkeypatch):
    monkeypatch.setattr(Guard, "around", lambda self, answer: answer)
    monkeypatch.setattr(Guard, "installed", property(lambda self: False, lambda self, value: None), raising=False)
    before = threading.active_count()
    with pytest.raises(da.MissingExtraError, match="open to every page"):
        short_run.view(port=18112, block=False)
    assert threading.active_count() <= before + 1


def test_names_are_no_markup():
    name = "<img src=x onerror=alert(1)> **b** [l](javascript:x) `c` &amp; {1+1} # h"
    shown = literal(name)
    assert not set("<>*[]`{}(") & set(shown)
    import html

    assert html.unescape(shown) == name
