"""Sessions of browsers, in memory: a restart of the bridge ends them, and so does each logout at once."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.roles import UserRole

__all__ = ["LoginSession", "Sessions"]

_MOST = 10_000


@dataclass(slots=True)
class LoginSession:
    """Session of one browser."""

    user: str
    role: UserRole
    id_token: str
    """Token of the login, which the server wants to see at the logout."""
    began: float
    """Monotonic seconds."""
    used: float


class Sessions:
    """All sessions by their secrets, which the browsers have in a cookie. Bounded; safe from any thread."""

    def __init__(self, idle_seconds: float, most_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds; the other arguments are as in `SessionConfig`."""
        self._idle = idle_seconds
        self._most = most_seconds
        self._clock = clock
        self._lock = Lock()
        self._sessions: dict[str, LoginSession] = {}
        """Sessions by their secrets, those used last at the end."""

    def begin(self, user: str, role: UserRole, id_token: str) -> str:
        """Begins a session, and returns its secret; above 10,000 sessions, the one not used for longest ends."""
        now, secret = self._clock(), secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[secret] = LoginSession(user, role, id_token, now, now)
            if len(self._sessions) > _MOST:
                del self._sessions[next(iter(self._sessions))]
        return secret

    def find(self, secret: str, *, opens_page: bool) -> LoginSession | None:
        """Returns a session that has not ended; `opens_page` is true if the request shows that its user is there."""
        now = self._clock()
        with self._lock:
            found = self._sessions.pop(secret, None)
            if found is None or now - found.used >= self._idle or now - found.began >= self._most:
                return None
            if opens_page:
                found.used = now
            self._sessions[secret] = found
            return found

    def end(self, secret: str) -> LoginSession | None:
        """Ends a session, and returns what it was; None if there is none."""
        with self._lock:
            return self._sessions.pop(secret, None)
