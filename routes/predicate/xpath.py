"""Paths into XML bodies: the part of XPath 1.0 that one pass over a document can answer.

There are steps to child elements, with a position, and a last step to an attribute or to `text()`. Prefixes of
namespaces do not count: elements and attributes have their local names.
"""

from __future__ import annotations

import re

from routes.predicate.nodes import XmlPath, XmlStep

__all__ = ["XPathError", "parse_xpath"]

_NAME = r"[^\W\d][\w.\-\u00b7]*"
_STEP = re.compile(rf"/(?:(?:{_NAME}):)?({_NAME})(?:\[\s*(?:([1-9][0-9]{{0,8}})|(last)\(\s*\))\s*\])?")
_ATTRIBUTE = re.compile(rf"/@(?:(?:{_NAME}):)?({_NAME})")
_TEXT = re.compile(r"/text\(\s*\)")
_NUMBER = re.compile(r"\s*number\(\s*(.*?)\s*\)\s*", re.DOTALL)
_REST = "there are /child, /child[1], /child[last()], and at the end /@attribute or /text()"


class XPathError(ValueError):
    """Raised for an expression that is not one of these paths.

    Attributes:
        offset: place of the fault in the expression, from 0.
        hint: what may stand there.
    """

    def __init__(self, message: str, offset: int, hint: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint


def parse_xpath(expression: str, position: int = 0, end: int = 0) -> XmlPath:
    """Parses an expression; `position` and `end` are the place of the node in its predicate.

    Raises:
        XPathError: the expression is something else.
    """
    number = _NUMBER.fullmatch(expression)
    path = expression.strip() if number is None else number[1]
    start = len(expression) - len(expression.lstrip()) if number is None else number.start(1)
    if not path:
        raise XPathError("there is no path", start, "as in xpath('/order/@priority')")
    # A path without a slash begins at the document, too: nothing else surrounds it.
    at, shift = (0, 0) if path.startswith("/") else (0, 1)
    path = "/" * shift + path
    steps: list[XmlStep] = []
    attribute, is_own_text = None, False
    while at < len(path):
        if steps and (step := _TEXT.match(path, at)):
            is_own_text = True
        elif steps and (step := _ATTRIBUTE.match(path, at)):
            attribute = step[1]
        elif step := _STEP.match(path, at):
            place = -1 if step[3] else None if step[2] is None else int(step[2])
            steps.append(XmlStep(step[1], place))
        is_last = attribute is not None or is_own_text
        if step is None or (is_last and step.end() < len(path)) or path[step.end() : step.end() + 1] not in ("", "/"):
            wrong = at if step is None else step.end()
            raise _unknown(path, wrong, start + max(wrong - shift, 0))
        at = step.end()
    return XmlPath(tuple(steps), attribute, is_own_text, number is not None, position=position, end=end)


def _unknown(path: str, at: int, offset: int) -> XPathError:
    rest = path[at:]
    if rest.startswith("//"):
        return XPathError("// is not part of the paths here", offset, "name each step, as in /order/customer/id")
    if rest.startswith("["):
        return XPathError(f"{rest} is not a position", offset, "elements are counted from 1: [1], [2], [last()]")
    if at == 0 and rest.startswith(("/@", "/text")):
        return XPathError(
            "the document has no attributes and no text of its own", offset, "name the root element first"
        )
    return XPathError(f"found {rest!r}", offset, _REST)
