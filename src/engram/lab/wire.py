"""Connections of the lab: whatever one sends, or does not send, ends at most itself."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from engram.lab.quiet_log import FAULT
from engram.text import printable

SECONDS_FOR_A_REQUEST = 5.0  # from the opening, or the answer before, to the end of the headers


class Requests(H11Protocol):
    """HTTP; a connection that does not bring a whole request in time is cut, however busily it sends."""

    _deadline: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except Exception as error:
            _drop(self, f"sent what cannot be answered ({error})")
        self._await_request()

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True  # a request whose body is nonsense has had its answer

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_request()

    def _await_request(self) -> None:
        """The clock runs while nothing is being answered; one that runs is not set back."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.transport.get_protocol() is not self:  # another protocol: it is a WebSocket now
            self._stop_waiting()
        elif self._deadline is None:
            self._unread = self.transport.get_write_buffer_size()
            self._deadline = self.loop.call_later(SECONDS_FOR_A_REQUEST, self._cut)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        """Who still reads the answer before, slowly, gets more time."""
        self._deadline = None
        if 0 < self.transport.get_write_buffer_size() < self._unread:
            self._await_request()
        else:
            self.transport.abort()


class Frames(WebSocketsSansIOProtocol):
    """WebSockets; what is no frame closes the connection, and one line says so."""

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except Exception as error:
            _drop(self, f"sent what is no message ({error})")
            return
        if not self.handshake_initiated:
            _drop(self, "asked for a WebSocket in a way that is none")
        elif self.conn.parser_exc is not None:
            _note(self, f"sent what is no frame ({self.conn.parser_exc})")


def _drop(connection: Any, why: str) -> None:
    _note(connection, why)
    connection.transport.abort()


def _note(connection: Any, why: str) -> None:
    host, port = connection.client or ("somebody", 0)
    connection.logger.warning(FAULT, f"{host} port {port}", printable(why))
