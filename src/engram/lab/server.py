"""The server of the lab: one page, one WebSocket a tab. It binds to this machine, and every request shows the token."""

import base64
import hashlib
import re
import secrets
import socket
from importlib.resources import files

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from engram.errors import EngramError
from engram.lab.backend import Backend
from engram.lab.protocol import LARGEST_MESSAGE
from engram.lab.tab import Tab

PAGE = files("engram") / "lab/static/lab.html"
FORBIDDEN = 4403


def application(backend: Backend) -> Starlette:
    async def page(request: Request) -> Response:
        if not _allowed(backend, request):
            return PlainTextResponse("The lab needs the token of its URL: copy the whole line that was printed.", 403)
        html = PAGE.read_bytes()
        return Response(html, media_type="text/html", headers=_headers(html))

    async def tab(socket: WebSocket) -> None:
        if not _allowed(backend, socket):
            await socket.close(FORBIDDEN)
            return
        await socket.accept()
        await Tab(backend, socket).serve()

    return Starlette(routes=[Route("/", page), WebSocketRoute("/ws", tab)])


def _allowed(backend: Backend, connection: HTTPConnection) -> bool:
    """The token must be right; a page of another origin is refused even if it has it."""
    given, origin = connection.query_params.get("token", ""), connection.headers.get("origin")
    own = origin is None or origin.partition("://")[2] == connection.headers.get("host")
    return own and secrets.compare_digest(given.encode(), backend.token.encode())


def _headers(html: bytes) -> dict[str, str]:
    """Only the script of the page itself may run, and it may speak to this server only."""
    scripts = re.findall(rb"<script[^>]*>(.*?)</script>", html, re.S)
    sums = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in scripts)
    policy = {
        "default-src": "'none'",
        "script-src": sums or "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


def free_port(host: str, wanted: int | None) -> int:
    """The port that was asked for, or one that nobody uses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just left may come back
        try:
            probe.bind((host, wanted or 0))
        except OSError as error:
            raise EngramError(f"--port {wanted}: cannot be used here ({error.strerror}); leave it out") from None
        return probe.getsockname()[1]


def config(backend: Backend, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        application(backend),
        host=host,
        port=port,
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,
        log_level="warning",
        access_log=False,  # URLs hold the token
        timeout_graceful_shutdown=1,
    )


def serve(backend: Backend, host: str, port: int) -> None:
    """Until Ctrl-C. One thread draws: training keeps its cores."""
    torch.set_num_threads(1)
    uvicorn.Server(config(backend, host, port)).run()
