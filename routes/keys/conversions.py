"""Kind of value of `routes.NAME.out.convert`: steps with commas between them."""

from __future__ import annotations

import re
from difflib import get_close_matches

from routes.body_steps import BodyStep, BodySteps, StepKind
from routes.charsets import charset, near_charset
from routes.keys.values import BadValueError, ValueKind, one_of

__all__ = ["BODY_STEPS"]

_KINDS = [*StepKind]
_HINT = "as in gunzip, from IBM1047"
_ORDER = f"steps have the order {', '.join(_KINDS)}"


def _parse_steps(text: str) -> BodySteps:
    steps: list[BodyStep] = []
    for part in re.finditer(r"[^,]+|(?:(?<=,)|^)(?=,|$)", text):
        offset = part.end() - len(part[0].lstrip())
        try:
            step = _parse_step(part[0].strip())
            _check_order(steps, step)
        except BadValueError as error:
            raise BadValueError(str(error), error.hint, error.offset + offset) from error
        steps.append(step)
    return BodySteps(tuple(steps))


def _parse_step(text: str) -> BodyStep:
    if not text:
        raise BadValueError("a step is missing", _HINT)
    word, _, rest = text.partition(" ")
    if word not in _KINDS:
        near = get_close_matches(word.lower(), _KINDS, n=1)
        raise BadValueError(f"'{word}' is not {one_of(_KINDS)}", f"did you mean {near[0]}?" if near else _HINT)
    kind, name = StepKind(word), rest.strip()
    if not kind.takes_charset:
        if name:
            raise BadValueError(f"'{kind}' takes nothing after it", "separate steps by commas", len(text) - len(name))
        return BodyStep(kind)
    if not name:
        raise BadValueError(f"'{kind}' needs a character set", f"as in {kind} IBM1047 or {kind} ISO-8859-1")
    known = charset(name)
    if known is None:
        near_name = near_charset(name)
        hint = f"did you mean {near_name}?" if near_name else "such as IBM1047, ISO-8859-1, windows-1252 or UTF-16"
        raise BadValueError(f"'{name}' is not a character set that is known here", hint, len(text) - len(name))
    return BodyStep(kind, known)


def _check_order(before: list[BodyStep], step: BodyStep) -> None:
    if not before:
        return
    last = before[-1]
    if last.kind is step.kind:
        raise BadValueError(f"'{step}' comes after another '{step.kind}'", "each kind of step once")
    if _KINDS.index(step.kind) < _KINDS.index(last.kind):
        raise BadValueError(f"'{step}' comes after '{last}'", _ORDER)


BODY_STEPS = ValueKind("list of steps", "steps such as gunzip, from IBM1047", _parse_steps)
