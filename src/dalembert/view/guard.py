"""Who may see the live view: the browser that was given its address, and nobody else.

The page is served to this machine alone, but every web page that is open in a browser here could ask for it: by its number, or by
a name of its own that points here. So requests need a secret in the address, a host that is this machine's own, and no
foreign page as their origin.
"""
from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from typing import Any

from dalembert.errors import MissingExtraError

#: names by which a browser may know this machine
HOSTS = ("127.0.0.1", "localhost", "[::1]")

_patching = threading.Lock()


class Guard:
    """The secret of one page, and what is refused without it."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(18)
        self.installed = False

    def refusal(self, path: str, host: str, origin: str | None) -> str:
        """Why a request is refused; empty when it is not."""
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if (name or host).lower() not in HOSTS or (port and not port.isdigit()):
            return f"this page is served to {HOSTS[0]} alone"
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return "other pages may not ask for this one"
        given = path.partition("?")[0].lstrip("/").partition("/")[0]
        if not secrets.compare_digest(given.encode(errors="replace"), self.token.encode()):
            return "the address lacks its secret: use the one that was printed"
        return ""

    def around(self, answer: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
        """``answer``, which a server asks for each request, behind the guard; it sees addresses without the secret."""
        def guarded(connection: Any, request: Any) -> Any:
            hosts, origins = (request.headers.get_all(name) for name in ("Host", "Origin"))
            reason = "several hosts or origins" if len(hosts) != 1 or len(origins) > 1 else self.refusal(request.path, hosts[0], origins[0] if origins else None)
            if reason:
                return connection.respond(HTTPStatus.FORBIDDEN, f"{reason}\n")
            request.path = "/" + request.path.lstrip("/")[len(self.token) :].lstrip("/")
            response = None if answer is None else answer(connection, request)
            if response is not None:
                response.headers["Referrer-Policy"] = "no-referrer"  # the address is a secret
            return response
        return guarded

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Guard the server that viser starts meanwhile. It has no place for that, so that its way to start one is changed for a moment."""
        place: Any = import_module("viser.infra._infra")
        original, guard = place.websockets, self

        class Servers:
            """The library as it is, but for starting a server."""

            def __getattr__(self, name: str) -> Any:
                return getattr(original.asyncio.server, name)

            def serve(self, handler: Any, *arguments: Any, process_request: Any = None, **options: Any) -> Any:
                guard.installed = True
                return original.asyncio.server.serve(handler, *arguments, process_request=guard.around(process_request), **options)

        with _patching:
            place.websockets = _Changed(original, asyncio=_Changed(original.asyncio, server=Servers()))
            try:
                yield
            finally:
                place.websockets = original

    def check(self) -> None:
        """An error when the server started without the guard."""
        if not self.installed:
            raise MissingExtraError("this version of viser starts its server in another way, and the live view would be open to every page: pip install 'viser<2'")


class _Changed:
    """A module with some names changed."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(_module=module, **names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
