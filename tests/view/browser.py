"""A headless Chromium for tests, spoken to over its DevTools socket."""
from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = ["--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--remote-debugging-port=0", "--window-size=1000,700",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--mute-audio"]


def executable() -> str:
    """The browser's path; the test is skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium is installed")


class Page:
    """One page: evaluate JavaScript in it, take pictures of it, see what it asked the network for."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.count, self.requests, self.errors = socket, 0, [], []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])
            if message.get("id") == self.count:
                return message.get("result", {})

    def open(self, url: str) -> None:
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True).get("result", {}).get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> Any:
        """The first true value of an expression."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.1)
        raise AssertionError(f"{expression} stayed false for {seconds} s; errors: {self.errors}")

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A page in a new browser with a profile of its own."""
    client = pytest.importorskip("websockets.sync.client")
    process = subprocess.Popen([executable(), *FLAGS, f"--user-data-dir={folder}", "about:blank"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        file = folder / "DevToolsActivePort"
        for _ in range(300):
            if file.is_file() and len(file.read_text().splitlines()) == 2:
                break
            time.sleep(0.1)
        port = int(file.read_text().splitlines()[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=20) as answer:
            target = next(t for t in json.load(answer) if t["type"] == "page")
        with client.connect(target["webSocketDebuggerUrl"], max_size=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(timeout=20)
