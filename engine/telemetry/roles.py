"""Roles of those who log in over HTTP, and the role that each request needs.

A viewer sees all that changes nothing; an operator changes things, too. Requests that only ask (GET, HEAD) need a
viewer, but for pages that have nothing for one. Every other request needs the role in `NEEDED`, or an operator if its
path is not there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

__all__ = ["NEEDED", "ROLE", "UserRole", "needed_role", "role_of"]

ROLE = "jmsbridge.role"
"""Key in a request's scope: the `UserRole` of the login."""


class UserRole(IntEnum):
    """Roles, each with all that the smaller ones may do."""

    VIEWER = 1
    OPERATOR = 2

    def __str__(self) -> str:
        return self.name.lower()


_ASKING = ("GET", "HEAD")
_FORMS = frozenset({"/send", "/dead-letters/all"})
"""Pages that have nothing but a form for operators, or the progress of what it began."""
NEEDED: Mapping[str, UserRole] = {
    "/try": UserRole.VIEWER,
    "/parts": UserRole.OPERATOR,
    "/send": UserRole.OPERATOR,
    "/dead-letters/all": UserRole.OPERATOR,
    "/dead-letters/letter/{partition}/{offset}/correct": UserRole.OPERATOR,
    "/dead-letters/settle": UserRole.OPERATOR,
    "/api/reload": UserRole.OPERATOR,
    "/api/restart": UserRole.OPERATOR,
    "/api/pause": UserRole.OPERATOR,
    "/api/resume": UserRole.OPERATOR,
}
"""Roles that requests other than GET and HEAD need, by path; one with a variable in it needs an operator."""


def needed_role(method: str, path: str) -> UserRole:
    """The smallest role that may make a request."""
    asks = method in _ASKING and path not in _FORMS
    return UserRole.VIEWER if asks else NEEDED.get(path, UserRole.OPERATOR)


def role_of(request: Request) -> UserRole:
    """The role of the login with which a request was made; that of a viewer if nothing has checked the login."""
    role: UserRole = request.scope.get(ROLE, UserRole.VIEWER)
    return role
