"""Names of the JVM that a process looks up once: its classes, and their static methods.

PySpark asks the JVM what a name stands for each time that it is used: a third of all calls while a plan is made.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

__all__ = ["remember_names"]


def remember_names(view: JVMView) -> None:
    """Makes PySpark's view of the JVM keep what it has found; classes must not be added or imported under its names."""
    view.__class__ = _View


class _View(JVMView):  # type: ignore[misc] # Py4J has no types
    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc] # Py4J has no types
    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


class _Class(JavaClass):  # type: ignore[misc] # Py4J has no types
    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


def _kept(owner: object, name: str, found: Any) -> Any:
    """Keeps what was found under a name in `owner`, unless it is a value, as of a static field; returns it."""
    if type(found) is JavaPackage:
        found.__class__ = _Package
    elif type(found) is JavaClass:
        found.__class__ = _Class
    elif not isinstance(found, JavaMember):
        return found
    vars(owner)[name] = found
    return found
