"""The server of the lab: one page, one WebSocket a tab. It binds to this machine, and every request shows the token."""

import asyncio
import secrets
import socket
from importlib.resources import files

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from engram.lab.address import Address
from engram.lab.backend import Backend
from engram.lab.mailbox import SHORTEST_TOKEN
from engram.lab.protocol import LARGEST_MESSAGE
from engram.lab.quiet_log import FewLines, log_config
from engram.lab.tab import Tab
from engram.lab.wire import Frames, Requests
from engram.show.html import policy

PAGE = files("engram") / "lab/static/lab.html"
FORBIDDEN = 4403
SECONDS_BETWEEN_LOOKS = 0.5  # at the token, while a page is open


def application(backend: Backend, address: Address) -> Starlette:
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
        await _serve_while_allowed(backend, socket)

    routes = [Route("/", page), WebSocketRoute("/ws", tab)]
    return Starlette(routes=routes, middleware=[Middleware(OwnAddress, address)])


class OwnAddress:
    """Whoever asks for the lab by another name than its own is refused, whatever else the request says."""

    def __init__(self, app: ASGIApp, address: Address):
        self.app, self.address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_named_by(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(FORBIDDEN)
        else:
            refusal = PlainTextResponse(
                "The lab is not served at this host: copy the whole line that was printed.", 403
            )
            await refusal(scope, receive, send)

    def _is_named_by(self, scope: Scope) -> bool:
        return self.address.is_own(HTTPConnection(scope).headers.get("host", ""), scope["server"][0])


def _allowed(backend: Backend, connection: HTTPConnection) -> bool:
    """The token must be right; a page of another origin is refused even if it has it."""
    origin = connection.headers.get("origin")
    own = origin is None or origin == f"http://{connection.headers['host']}"
    return own and _has_the_token(backend, connection)


def _has_the_token(backend: Backend, connection: HTTPConnection) -> bool:
    """As it is now. Where there is none, nobody has it."""
    given, token = connection.query_params.get("token", ""), backend.token
    return len(token) >= SHORTEST_TOKEN and secrets.compare_digest(given.encode(), token.encode())


async def _serve_while_allowed(backend: Backend, socket: WebSocket) -> None:
    """Until the page leaves, or the token is no longer the one that it came with."""
    serving = asyncio.create_task(Tab(backend, socket).serve())
    try:
        while not serving.done() and _has_the_token(backend, socket):
            await asyncio.wait([serving], timeout=SECONDS_BETWEEN_LOOKS)
    finally:
        serving.cancel()
    await asyncio.wait([serving])
    if serving.cancelled():
        await socket.close(FORBIDDEN)
    else:
        serving.result()  # a bug is not passed over


def _headers(html: bytes) -> dict[str, str]:
    """Only the script of the page itself may run, and it may speak to this server only."""
    rules = policy(html.decode(), {"img-src": "data: blob:", "connect-src": "'self'", "frame-ancestors": "'none'"})
    return {
        "Content-Security-Policy": rules,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


def config(backend: Backend, address: Address) -> uvicorn.Config:
    few = FewLines()

    async def tell() -> None:
        few.tell()

    return uvicorn.Config(
        application(backend, address),
        host=address.host,
        port=address.port,
        http=Requests,
        ws=Frames,
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,
        log_config=log_config(few),
        log_level="warning",
        access_log=False,  # URLs hold the token
        callback_notify=tell,
        timeout_notify=60,
        proxy_headers=False,  # nobody stands before the lab who could speak for others
        timeout_graceful_shutdown=1,
    )


def serve(backend: Backend, address: Address, sockets: list[socket.socket]) -> None:
    """Until Ctrl-C. One thread draws: training keeps its cores."""
    torch.set_num_threads(1)
    uvicorn.Server(config(backend, address)).run(sockets)
