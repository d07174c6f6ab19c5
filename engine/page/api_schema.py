"""OpenAPI document of the API: parameters, and JSON Schemas of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.dead_letters.state import LetterState
from engine.find.question import TopicKind
from engine.telemetry.control import HEADER
from engine.telemetry.metrics import DEAD_LETTER_REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.telemetry.control import ChangeRequest

__all__ = [
    "ACTIONS",
    "BROWSE",
    "FIND",
    "FIND_LINE",
    "LETTERS",
    "LOOKS",
    "MESSAGE",
    "OF_ACTIONS",
    "OF_LETTERS",
    "OF_LOOKS",
    "OF_STATE",
    "POSITION",
    "RECORDS",
    "STATE_NODES",
    "STATE_ROWS",
    "STATUS",
    "TOPICS",
    "TOPOLOGY",
    "Parameter",
    "document",
]

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": ["number", "null"]}
_TIME: Schema = {"type": ["string", "null"], "description": "ISO 8601 in UTC; null if there is none"}
_OR_NULL: Schema = {"type": ["string", "null"]}
_KIND: Schema = {"type": "string", "enum": list(TopicKind)}
_LAST_WORDS = {"records": "Records", "state": "StateNodes", "{node}": "StateRows"}
"""Ends of the ids of operations, by the last part of their paths."""
_ERRORS = {
    "400": "Wrong parameters",
    "403": "A search that a page of another site asks for, or that would tell a viewer a masked value",
    "404": "No such topic, record, topology, node or path",
    "503": "Kafka or a topology does not answer, or the bridge is busy",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request."""

    name: str
    about: str
    schema: Mapping[str, Any] = field(default_factory=lambda: _TEXT)
    place: str = "query"
    """`query`, `path` or `header`."""
    is_needed: bool = False


def _object(**members: Mapping[str, Any]) -> Schema:
    """An object with these members, each of which is there."""
    return {"type": "object", "properties": members, "required": list(members)}


def _list(of: Mapping[str, Any]) -> Schema:
    return {"type": "array", "items": of}


def _bytes(name: str) -> Schema:
    """Members for bytes: as text, or in Base64 if they are not UTF-8."""
    return {name: _OR_NULL, f"{name}_base64": {"type": "string", "contentEncoding": "base64"}}


_HEADER: Schema = {"type": "object", "properties": {"name": _TEXT, **_bytes("value")}, "required": ["name"]}
_PLACE: Schema = {"topic": _TEXT, "partition": _WHOLE, "offset": _WHOLE, "time": _TIME}
_HIDDEN: Schema = {"type": "string", "description": "Reason for which the body is not shown; `body` is null then"}
_RECORD: Schema = {
    "type": "object",
    "properties": {**_PLACE, **_bytes("key"), "headers": _list(_HEADER), **_bytes("body"), "body_hidden": _HIDDEN},
    "required": [*_PLACE, "headers"],
}


def _record(**members: Mapping[str, Any]) -> Schema:
    """A record with more members, each of which is there."""
    return {
        **_RECORD,
        "properties": {**_RECORD["properties"], **members},
        "required": [*_RECORD["required"], *members],
    }


_PROGRESS = _object(
    read=_WHOLE,
    total=_WHOLE,
    records=_WHOLE,
    removed=_WHOLE,
    found=_WHOLE,
    resume=_OR_NULL,
    done=_FLAG,
    notes=_list(_TEXT),
    text=_TEXT,
)
FIND_LINE: Schema = {"oneOf": [_object(record=_record(kind=_KIND)), _object(progress=_PROGRESS), _object(error=_TEXT)]}
STATUS = _object(
    bridge=_TEXT,
    version=_TEXT,
    leads={"type": ["boolean", "null"], "description": "null for a bridge that takes part in no election"},
    parts=_list(_object(name=_TEXT, host=_OR_NULL, state=_TEXT, detail=_TEXT, restarts=_NUMBER)),
    journaled_per_second=_NUMBER,
    routed_per_second=_NUMBER,
    latency_seconds=_NUMBER,
    waiting=_NUMBER,
    waiting_seconds=_NUMBER,
    failed=_NUMBER,
    sources=_list(
        _object(name=_TEXT, waiting={**_NUMBER, "description": "messages at its system; null if that does not say it"})
    ),
    routes=_list(_object(name=_TEXT, routed=_NUMBER, routed_per_second=_NUMBER, failed=_NUMBER, paused=_FLAG)),
    dead_letters={
        "anyOf": [
            {"type": "null"},
            _object(
                topic=_TEXT,
                reachable=_FLAG,
                open=_NUMBER,
                held=_WHOLE,
                reasons={"type": ["object", "null"], "additionalProperties": _WHOLE},
                quarantined=_NUMBER,
            ),
        ]
    },
)
_TOPIC: Schema = {"topic": _TEXT, "kind": _KIND, "user": _TEXT}
_PARTITION = _object(partition=_WHOLE, first=_WHOLE, next=_WHOLE, first_time=_TIME, last_time=_TIME)
TOPICS = _object(topics=_list(_object(**_TOPIC, exists=_FLAG, partitions=_list(_PARTITION))))
RECORDS = _object(
    **_TOPIC,
    records=_list(_record(size=_WHOLE, cut={**_FLAG, "description": "true if the body has the first 64 KiB only"})),
    looked_at=_WHOLE,
    in_time={**_FLAG, "description": "false if the time was over before enough records were found or all were read"},
    older=_OR_NULL,
)
_EVENT = _object(
    time=_TIME, what=_TEXT, detail=_TEXT, record=_OR_NULL, link={**_OR_NULL, "description": "URL of the trace"}
)
MESSAGE = _record(
    kind=_KIND,
    user=_TEXT,
    journal=_OR_NULL,
    timeline={"type": ["array", "null"], "items": _EVENT},
    timeline_fault={**_OR_NULL, "description": "reason for which there is no timeline"},
)
LETTERS = _object(
    letters=_list(
        _object(
            position=_TEXT,
            time=_TIME,
            reason=_TEXT,
            route=_OR_NULL,
            detail=_TEXT,
            size=_WHOLE,
            replays=_WHOLE,
            state={"enum": [*LetterState, None], "description": "null if it is not known"},
            retry={**_TIME, "description": "time after which the bridge replays the letter by itself; null for never"},
        )
    ),
    looked_at=_WHOLE,
    is_complete=_FLAG,
    next={"type": ["integer", "null"], "description": "number of the next page"},
)
LOOKS = _object(
    looks=_list(
        _object(
            time=_TEXT,
            user={**_TEXT, "description": "empty if no login is needed"},
            role=_TEXT,
            host=_TEXT,
            way=_TEXT,
            masked=_FLAG,
            records=_list(_TEXT),
        )
        | {"description": "`state` has the topology and the node, with a slash between them, for a look at its rows"}
    )
)
ACTIONS = _object(
    actions=_list(
        _object(
            id=_TEXT,
            time=_TEXT,
            user={**_TEXT, "description": "empty if no login is needed"},
            role=_TEXT,
            host=_TEXT,
            action=_TEXT,
            target={**_TEXT, "description": "part, route, positions or destination; empty for the bridge"},
            result={**_TEXT, "description": "empty if it is not known"},
        )
    )
)
STATE_NODES = _object(topology=_TEXT, nodes=_list(_object(node=_TEXT, operator=_TEXT)))
STATE_ROWS = _object(
    topology=_TEXT,
    node=_TEXT,
    live={**_FLAG, "description": "true: with what is processed and not committed; false: as the last commit left it"},
    positions={
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": _WHOLE},
        "description": "by topic and partition, the offset up to which the records are in the rows",
    },
    rows=_list({"type": "object", "description": "fields of a row, with its key in `key`"}),
    next=_OR_NULL,
)

_MANY: Schema = {"type": "array", "items": _TEXT}
_SINCE = Parameter("since", "Time of the oldest record: ISO 8601, or how long ago, as 2h")
_UNTIL = Parameter("until", "Time before which a record is, likewise")
_WHERE = Parameter("where", "Predicate of the routing language that the message has to fulfil")
FIND = (
    Parameter("id", "JMSMessageID or JMSCorrelationID, with `ID:` in front or without"),
    Parameter("message_id", "JMSMessageID, likewise"),
    Parameter("correlation_id", "JMSCorrelationID, likewise"),
    Parameter("key", "Key of the record"),
    Parameter("header", "NAME=VALUE of a JMS field, a property, or a header of the record", _MANY),
    _WHERE,
    Parameter("text", "Text in the body"),
    _SINCE,
    _UNTIL,
    Parameter("kind", "Kinds of topics to read; all if none is given", {"type": "array", "items": _KIND}),
    Parameter("topic", "Names of the only topics to read", _MANY),
    Parameter(
        "most", "Number of records to find, 100 if none is given", {"type": "integer", "minimum": 1, "maximum": 1000}
    ),
    Parameter("resume", "Token of an earlier answer, from which the same search continues"),
)
BROWSE = (
    Parameter("topic", "Name of a topic of the bridge", place="path", is_needed=True),
    _WHERE,
    _SINCE,
    _UNTIL,
    Parameter("before", "Place of a page of older records: `older` of the page before it"),
    Parameter("count", "Number of records, 50 if none is given", {"type": "integer", "minimum": 1, "maximum": 200}),
)
_COUNT = Parameter(
    "count", "Number of entries, 200 if none is given", {"type": "integer", "minimum": 1, "maximum": 1000}
)
_USER = Parameter("user", "Part of the user name")
OF_LOOKS = (_USER, _COUNT)
OF_ACTIONS = (
    _USER,
    Parameter("action", "Action, such as pause"),
    Parameter("target", "Part of the target"),
    _COUNT,
)
POSITION = Parameter(
    "position", "TOPIC:PARTITION:OFFSET, or PARTITION:OFFSET in the journal", place="path", is_needed=True
)
TOPOLOGY = Parameter("topology", "Name of a topology in the properties file", place="path", is_needed=True)
OF_STATE = (
    TOPOLOGY,
    Parameter("node", "Name of a node with rows: a table or an aggregate", place="path", is_needed=True),
    Parameter("key", "Key of the rows; a key with fields as JSON"),
    Parameter("from", "First key of the rows"),
    Parameter("to", "Last key of the rows"),
    Parameter("prefix", "Text with which the keys begin"),
    Parameter("window_from", "Earliest beginning of a window: ISO 8601, or milliseconds since 1970"),
    Parameter("window_to", "Latest beginning of a window, likewise"),
    Parameter("limit", "Number of rows, 100 if none is given", {"type": "integer", "minimum": 1, "maximum": 1000}),
    Parameter("after", "Place of a page: `next` of the page before it"),
    Parameter(
        "live",
        "true, the default, for the state with all that is processed; false for that of the last commit",
        {"type": "boolean"},
    ),
)
OF_LETTERS = (
    Parameter("reason", "Reason of the failure", {"type": "string", "enum": [*DEAD_LETTER_REASONS]}),
    Parameter("route", "Name of the route; `-` for none"),
    Parameter("state", "State of the letter", {"type": "string", "enum": list(LetterState)}),
    _SINCE,
    _UNTIL,
    _WHERE,
    Parameter("quarantine", "1 for the letters in quarantine", {"type": "string", "enum": ["1"]}),
    Parameter("page", "Number of the page, of 50 letters each", {"type": "integer", "minimum": 1, "maximum": 20}),
)


_PART = Parameter("part", "Name of a part, such as `source:orders`; for a pause also `route:NAME`", is_needed=True)
_FROM_PROGRAM = Parameter(
    HEADER, "Any value; says that no page of another site has the browser ask", place="header", is_needed=True
)
_BY = Parameter("by", "User on whose behalf the request is made, for the audit; the login stands before it")


def document(
    version: str,
    endpoints: Mapping[str, tuple[str, tuple[Parameter, ...], Mapping[str, Any], str]],
    changes: Sequence[ChangeRequest],
) -> Schema:
    """Makes the OpenAPI 3.1 document.

    Args:
        version: version of the bridge.
        endpoints: by path, a summary, the parameters, the JSON Schema of the answer, and its media type.
        changes: requests that change the bridge.
    """
    return {
        "openapi": "3.1.0",
        "info": {"title": "JMS bridge", "version": version, "description": "State and messages of a bridge."},
        "paths": {path: {"get": _operation(path, *endpoint)} for path, endpoint in endpoints.items()}
        | {each.path: {"post": _change(each)} for each in changes},
        "components": {
            "schemas": {"Error": _object(error=_TEXT)},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"basic": []}, {"bearer": []}],
    }


def _change(change: ChangeRequest) -> Schema:
    given = (_PART, _BY) if change.of_part else (_BY,)
    answer = _object(parts=_MANY) if change.of_part else _object(request=_WHOLE)
    operation = _operation(change.path, change.about, (_FROM_PROGRAM, *given), answer, "application/json")
    answers = operation["responses"]
    refused = {**answers["403"], "description": f"The header {HEADER} is missing, or the login is a viewer's"}
    return {**operation, "responses": {"202": answers["200"], "400": answers["400"], "403": refused}}


def _operation(
    path: str, summary: str, parameters: tuple[Parameter, ...], answer: Mapping[str, Any], media: str
) -> Schema:
    error = {"schema": {"$ref": "#/components/schemas/Error"}}
    return {
        "operationId": path.removeprefix("/api/").partition("{")[0].strip("/")
        + _LAST_WORDS.get(path.rpartition("/")[2], ""),
        "summary": summary,
        "parameters": [
            {
                "name": each.name,
                "in": each.place,
                "required": each.is_needed,
                "description": each.about,
                "schema": each.schema,
            }
            for each in parameters
        ],
        "responses": {
            "200": {"description": "The answer", "content": {media: {"schema": answer}}},
            **{
                status: {"description": about, "content": {"application/json": error}}
                for status, about in _ERRORS.items()
            },
        },
    }
