"""Where the lab is served, and by which names it may be asked for."""

import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from engram.errors import EngramError

LOCAL = ("127.0.0.1", "localhost", "::1")
LAST_PORT = 65535
BACKLOG = 2048
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # an address of another machine, or of a family that is off
TRIES = 10  # a port that is free at one address of a name may be taken at another
Place = tuple[socket.AddressFamily, str]


@dataclass(frozen=True)
class Address:
    """What `--host` named, without brackets, and the port."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        return self.host in LOCAL

    def url(self, token: str, run: str | None = None, lesson: str | None = None) -> str:
        shown = {name: value for name, value in (("run", run), ("lesson", lesson)) if value}
        return f"http://{self._named(self.host)}/?token={token}" + (f"#{urlencode(shown)}" if shown else "")

    def is_own(self, named: str, reached: str) -> bool:
        """Whether a header Host names this machine, the host that was asked for, or the address that was reached.

        A page of a stranger whose name was made to lead here (DNS rebinding) sends that name.
        """
        own = {self._named(host) for host in (*LOCAL, self.host.lower(), reached)}
        return named.lower() in own or (self.port == 80 and f"{named.lower()}:80" in own)

    def _named(self, host: str) -> str:
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def listen(host: str, wanted: int | None) -> tuple[Address, list[socket.socket]]:
    """Sockets at every address of the host, all at the port that was asked for, or at one that nobody uses."""
    if wanted is not None and not 1 <= wanted <= LAST_PORT:
        raise EngramError(f"--port {wanted}: must be 1 to {LAST_PORT}; leave it out for one that is free")
    name = host.removeprefix("[").removesuffix("]")
    try:
        sockets = _sockets(_places(name), wanted)
    except OSError as error:
        raise _refusal(host, wanted, error) from None
    return Address(name, sockets[0].getsockname()[1]), sockets


def _refusal(host: str, wanted: int | None, error: OSError) -> EngramError:
    if wanted is None or error.errno in NOT_HERE:
        return EngramError(f"--host {host}: this machine has no such address ({error.strerror}); {_allowed()}")
    return EngramError(f"--port {wanted}: cannot be used here ({error.strerror}); leave it out")


def _allowed() -> str:
    return f"allowed: {', '.join(LOCAL)}, or a name or address of this machine"


def _places(name: str) -> list[Place]:
    """The addresses of a name. An empty one would be all of this machine."""
    try:
        found = socket.getaddrinfo(name or " ", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise EngramError(f"--host {name!r}: is no host that can be found; {_allowed()}") from None
    return list(dict.fromkeys((family, str(place[0])) for family, _, _, _, place in found))


def _sockets(places: Sequence[Place], wanted: int | None, tries: int = TRIES) -> list[socket.socket]:
    try:
        return _bound(places, wanted or 0)
    except OSError as error:
        if wanted is None and error.errno == errno.EADDRINUSE and tries > 1:
            return _sockets(places, wanted, tries - 1)
        raise


def _bound(places: Sequence[Place], port: int) -> list[socket.socket]:
    """One socket a place; places that this machine does not have are left out, as long as there is one."""
    made: list[socket.socket] = []
    missing: list[OSError] = []
    try:
        for family, host in places:
            try:
                made.append(_listening(family, host, made[0].getsockname()[1] if made else port))
            except OSError as error:
                if error.errno not in NOT_HERE:
                    raise
                missing.append(error)
        if not made:
            raise missing[0]
    except OSError:
        for each in made:
            each.close()
        raise
    return made


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    """From here on nobody else has the port, and who comes before the server is ready waits."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just left may come back
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made
