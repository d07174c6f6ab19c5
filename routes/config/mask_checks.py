"""Checks of masks: each looks at the keys of the routes that have one, and adds its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routes.keys.secrets import is_reference
from routes.predicate.bodies import body_path
from routes.predicate.mask import MaskMethod
from routes.predicate.nodes import BodyPath, DocumentFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.keys.settings import Settings
    from routes.predicate.nodes import PathStep

__all__ = ["MASK_CHECKS", "covers", "taken_fields"]

_PATHS, _METHOD, _SECRET, _STEPS = (f"routes.NAME.out.{key}" for key in ("mask", "mask-with", "mask-secret", "convert"))


def keys_of_masks(settings: Settings) -> None:
    """Checks that the keys of a mask belong together, and that its secret is not in the file."""
    for name in settings.names("routes"):
        hashes = settings.get(_METHOD, name) is MaskMethod.HASH
        for key in (_METHOD, _SECRET):
            if settings.is_set(key, name) and not settings.is_set(_PATHS, name):
                settings.fault(
                    key, name, f"route '{name}' masks nothing", f"set routes.{name}.out.mask, or remove this"
                )
        secret = settings.entry(_SECRET, name)
        if hashes and secret is None:
            hint = f"as in routes.{name}.out.mask-secret=${{env:MASK_SECRET}}"
            settings.fault(_METHOD, name, "'hash' needs a secret", hint)
        if secret is not None and not hashes and settings.is_set(_PATHS, name):
            hint = f"set routes.{name}.out.mask-with=hash, or remove this"
            settings.fault(_SECRET, name, "only 'hash' uses a secret", hint)
        if secret is not None and not is_reference(secret.value):
            # The lines of routes are kept for the next run, in the checkpoint and in Kafka.
            hint = "write ${env:NAME} or ${file:PATH}: Kafka keeps the lines of routes, as they are, for the next start"
            settings.fault(_SECRET, name, "the secret of a mask does not stand in this file", hint)


def masks_that_leak(settings: Settings) -> None:
    """Checks that no key and no destination has a value that the route masks, and that bodies can have a mask."""
    for name in settings.names("routes"):
        paths = settings.get(_PATHS, name) or ()
        if paths and settings.get("routes.NAME.in.body", name) is DocumentFormat.XML:
            settings.fault(_PATHS, name, "'in.body' says that bodies are XML, and only JSON has masks", "remove one")
        steps = settings.get(_STEPS, name)
        if paths and steps and not steps.takes_json:
            message = f"'{steps.steps[0]}' takes no JSON, and out.mask, which comes first, nothing else"
            settings.fault(_STEPS, name, message, "remove one")
        for key, field in taken_fields(settings, name):
            taken, entry = body_path(field), settings.entry(key, name)
            covering = [str(path) for path in paths if isinstance(taken, BodyPath) and covers(path, taken)]
            if covering and entry is not None:
                message = f"'{field}' would leave here as it is, and out.mask has '{covering[0]}'"
                settings.faults.append(entry.fault(message, "take another value", max(entry.value.find(field), 0)))


def taken_fields(settings: Settings, name: str) -> Iterator[tuple[str, str]]:
    """Yields the fields that a route takes from a message besides its predicates, each after the key that names it."""
    if key := settings.get("routes.NAME.conv.key", name):
        yield "routes.NAME.conv.key", key
    for target in settings.get("routes.NAME.out.topic", name) or ():
        for reference in target.address.references:
            yield "routes.NAME.out.topic", reference.name
    for setting in settings.open("routes.NAME.out.header.*", name):
        for reference in setting.value.references if setting.value else ():
            yield f"routes.NAME.out.header.{setting.rest}", reference.name


def covers(mask: BodyPath, taken: BodyPath) -> bool:
    """Returns whether a value may be one that a mask names, or be in one."""
    return len(mask.steps) <= len(taken.steps) and all(map(_may_be, mask.steps, taken.steps))


def _may_be(mask: PathStep, step: PathStep) -> bool:
    if not isinstance(mask, int) or not isinstance(step, int):
        return mask == step or (mask is None and isinstance(step, int))
    # One index from the start and one from the end may name the same element.
    return mask == step or (mask < 0) != (step < 0)


MASK_CHECKS = (keys_of_masks, masks_that_leak)
