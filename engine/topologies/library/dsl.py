"""DSL in the manner of Kafka Streams that builds and checks topologies; it needs no Spark session and no broker.

A builder makes streams, a stream makes further streams, `build` gives a frozen `Topology`: a list of named nodes in the
order of flow. `describe` prints a topology, `program` and `compile` run it, `driver` runs it on a few records.
Conditions, keys and fields are expressions: text of Spark SQL, Columns, or functions that get a `Row` of Columns and
are called once, when the topology is planned, never for each record.

    builder = StreamsBuilder("order-totals")
    orders = builder.stream("orders", value=json("customer string, amount double"))
    large, small = orders.split("size").branch("amount > 1000", name="large").default_branch("small")
    large.to("orders-large")
    totals = small.group_by("customer").windowed_by(TimeWindows.of("1 minute")).aggregate(total="sum(amount)")
    totals.to_stream().to("small-totals")
    topology = builder.build()

Names of nodes are given, or made from their kind and a number. State is kept under the names of nodes.
A record goes to every consumer of its stream, and at a split to the first branch whose condition accepts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.topologies.library import nodes
from engine.topologies.library.branches import Branches
from engine.topologies.library.drafts import Close, GlobalTable, Late, TopologyDraft
from engine.topologies.library.guidance import Guided, check_aggregates, header_faults, refuse_functions
from engine.topologies.library.nodes import Expression, Node, RowFunction, output_fault
from engine.topologies.library.python_functions import (
    BatchFunction,
    ProcessFunction,
    PythonFunction,
    TimerFunction,
    without_result,
)
from engine.topologies.library.serdes import Key, KeyKind, Serde, binary, key_form
from engine.topologies.library.topology import Topology, TopologyError, faults_of
from engine.topologies.library.windows import Duration, Windows, check_windows

__all__ = ["GlobalTable", "Grouped", "GroupedTable", "Stream", "StreamsBuilder", "Table"]

_Topic: TypeAlias = str | Column | RowFunction


class StreamsBuilder(TopologyDraft, Guided):
    """Builder of a topology: collects nodes, and checks them all in `build`."""

    def __init__(self, name: str = "", *, max_ahead: Duration | None = None) -> None:
        """Creates a builder without nodes.

        `name` is the application id of the topology: it names its consumer group, its internal topics and its state.
        A record that is later than the clock by more than `max_ahead` is one that fails, and moves no stream time; with
        None all are taken. `stream` and `table` can say otherwise for a topic.
        """
        super().__init__()
        self._name = name
        self._max_ahead = max_ahead

    def stream(
        self,
        topic: str,
        *,
        value: Serde | None = None,
        key: Key = "text",
        max_ahead: Duration | None = None,
        name: str | None = None,
    ) -> Stream:
        """A stream of the records of a topic, whose values have the form `value`, or are bytes.

        Keys are `text`, `bytes` or `long`, or have fields or a schema: `json(…)`, `avro(…)`, `json_schema(…)`,
        `protobuf(…)`. `max_ahead` is that of the builder if it is None.
        """
        return self._source(self._named(name, "stream"), topic, value or binary(), key, max_ahead)

    def table(
        self,
        topic: str,
        *,
        value: Serde,
        key: Key = "text",
        max_ahead: Duration | None = None,
        name: str | None = None,
    ) -> Table:
        """A table of the latest value of each key of a topic; a record without a value removes its key."""
        name = self._named(name, "table")
        source = self._source(f"{name}-source", topic, value, key, max_ahead)._placed(f"{name}-keys")
        return self._table(nodes.ToTable(name, (source.name,)))

    def _source(self, name: str, topic: str, value: Serde, key: Key, max_ahead: Duration | None) -> Stream:
        given = self._max_ahead if max_ahead is None else max_ahead
        ahead_ms = None if given is None else self._duration(name, given)
        node = nodes.SourceNode(name, topic=topic, value=value, key=key_form(key), max_ahead_ms=ahead_ms)
        # Equal keys may differ in their bytes, by the schema's id for one, and so be in several partitions.
        return self._add(node, is_moved=not isinstance(node.key, KeyKind))

    def global_table(self, topic: str, *, value: Serde, key: Key = "text", name: str | None = None) -> GlobalTable:
        """A table of all partitions of a topic, which every task has whole, in memory."""
        name = self._named(name, "global-table")
        self._nodes.append(nodes.GlobalTableNode(name, topic=topic, value=value, key=key_form(key)))
        return GlobalTable(self, name)

    def build(self) -> Topology:
        """The finished topology.

        Raises:
            TopologyError: with every fault: names that topics cannot have or that are used twice, topics that are both
                read and written, splits without branches, no source or no sink.
        """
        faults = [*self._faults, *faults_of(self._nodes, self._name)]
        if faults:
            raise TopologyError(faults)
        return Topology(tuple(self._nodes), self._name)

    def _add(self, node: Node, *, keyed_by: str | None = None, is_moved: bool = False) -> Stream:
        self._nodes.append(node)
        return Stream(self, node.name, keyed_by=keyed_by, is_moved=is_moved)

    def _table(self, node: Node, *, windows: Windows | None = None, is_kept: bool = True) -> Table:
        self._nodes.append(node)
        return Table(self, node.name, windows=windows, is_kept=is_kept)

    def _is_own(self, name: str, *others: Stream | Table | GlobalTable) -> None:
        if any(other._builder is not self for other in others):
            self._fault(name, "it takes a stream or table of another builder")


class Stream(Guided):
    """Stream: the records at one point of a topology that is being built."""

    def __init__(
        self, builder: StreamsBuilder, name: str, *, keyed_by: str | None = None, is_moved: bool = False
    ) -> None:
        self._builder = builder
        self.name = name
        self._keyed_by = keyed_by
        """Text of the expression that gave the records their key."""
        self._is_moved = is_moved
        """True if the key was changed since the records were read, so that those of a key are in several partitions."""

    def filter(self, condition: Expression, *, name: str | None = None) -> Stream:
        """The records for which the condition is true (neither false nor unknown)."""
        return self._filter("filter", condition, name, is_negated=False)

    def filter_not(self, condition: Expression, *, name: str | None = None) -> Stream:
        """The records for which the condition is not true."""
        return self._filter("filter-not", condition, name, is_negated=True)

    def map_values(self, name: str | None = None, /, **fields: Expression) -> Stream:
        """The records with these fields instead of theirs, each an expression of the present fields."""
        refuse_functions("map_values", name)
        name = self._builder._named(name, "map-values")
        stream, computed = self, dict(fields)
        for field, expression in fields.items():
            stream, computed[field] = stream._computed(f"{name}-{field}", expression)
        return stream._then(nodes.MapValues(name, (stream.name,), fields=computed))

    def peek(self, function: BatchFunction, *, name: str | None = None) -> Stream:
        """The records as they are; the function gets them in batches, as one of `python`, and returns nothing."""
        name = self._builder._named(name, "peek")
        return self._computed(name, without_result(function))[0]._without_last_field(name)

    def process(
        self,
        function: ProcessFunction,
        *,
        fields: str,
        state: str | None = None,
        on_timer: TimerFunction | None = None,
        outputs: Mapping[str, str] | None = None,
        on_clock: TimerFunction | None = None,
        expire_after: Duration | None = None,
        name: str | None = None,
    ) -> Stream:
        """The records that a Python function returns or yields for each record, with state and timers of its key.

        The results keep the key, the time and the headers of the record; behind a timer, its key and time. After
        a crash the function may be called again for a record; its state, timers and results count once.

        Args:
            function: gets an `InputRecord` and a `ProcessorContext`; returns mappings from fields to values, or None.
            fields: fields of its results, as text of Spark SQL.
            state: fields of the state that is kept for each key, as text of Spark SQL; None: no state, no timers.
            on_timer: gets the context and the time of a timer, and returns records as `function`.
            outputs: fields of the results that `context.emit(…, to=NAME)` gives the stream `output(NAME)`, by its name.
            on_clock: the same for timers of the clock.
            expire_after: stream time after the latest record of a key at which its state is removed; None: never.
            name: name of the node, under which the state is kept.
        """
        name, outputs = self._builder._named(name, "process"), outputs or {}
        if state is None:
            self._builder._check_stateless(name, on_timer or on_clock, expire_after)
            return self._then(nodes.Process(name, (self.name,), function=function, fields=fields, outputs=outputs))
        parent = self._placed()
        kept = nodes.KeyedProcess(name, (parent.name,), function=function, fields=fields, outputs=outputs, state=state)
        ttl_ms = None if expire_after is None else self._builder._duration(name, expire_after, least=1)
        kept = replace(kept, on_timer=on_timer, on_clock=on_clock, ttl_ms=ttl_ms)
        return self._builder._add(kept, keyed_by=parent._keyed_by)

    def output(self, name: str) -> Stream:
        """The records that the function of `process`, whose result this stream is, emits to an output."""
        if fault := output_fault(self._builder._nodes, self.name, name):
            self._builder._fault(self.name, fault)
        node = nodes.ProcessOutput(f"{self.name}-{name}", (self.name,), output=name)
        if node in self._builder._nodes:
            return Stream(self._builder, node.name, keyed_by=self._keyed_by, is_moved=self._is_moved)
        return self._then(node)

    def flat_map(self, array: Expression, *, name: str | None = None) -> Stream:
        """A record for each element of an array; a struct's fields become the record's, other elements `value`."""
        name = self._builder._named(name, "flat-map")
        return self._then(nodes.FlatMap(name, (self.name,), array=array))

    def select_key(self, key: Expression, *, name: str | None = None) -> Stream:
        """The records with another key: a struct or bytes as they are, and everything else as text."""
        return self._keyed(self._builder._named(name, "select-key"), key)

    def with_headers(self, headers: Mapping[str, Expression | None], *, name: str | None = None) -> Stream:
        """The records with headers set, each an expression of the present fields and headers, or removed, with None.

        A header that is set replaces all of its name, behind the others, in the order of the mapping; these keep
        their order. Bytes are kept as they are, other values as text. An expression that is NULL removes the header.
        """
        name = self._builder._named(name, "with-headers")
        for fault in header_faults(headers):
            self._builder._fault(name, fault)
        return self._then(nodes.WithHeaders(name, (self.name,), headers=headers))

    def split(self, name: str) -> Branches[Stream, Expression]:
        """A split of the stream: add branches with `branch`, end with `default_branch` or `no_default_branch`."""
        self._builder._add(nodes.Split(name, (self.name,)))
        return Branches(lambda branch, condition: self._then(nodes.Branch(branch, (name,), condition=condition)))

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """A stream with the records of this stream and of the others, which must have the same fields and keys."""
        name = self._builder._named(name, "merge")
        streams = (self, *others)
        self._builder._is_own(name, *others)
        node = nodes.Merge(name, tuple(stream.name for stream in streams))
        keyed = {stream._keyed_by for stream in streams}
        return self._builder._add(
            node,
            keyed_by=self._keyed_by if len(keyed) == 1 else None,
            is_moved=any(stream._is_moved for stream in streams),
        )

    def repartition(self, *, name: str | None = None) -> Stream:
        """The records, those of each key in one partition; nodes that need this do it by themselves."""
        name = self._builder._named(name, "repartition")
        return self._builder._add(nodes.Repartition(name, (self.name,)), keyed_by=self._keyed_by)

    def group_by_key(self) -> Grouped:
        """The records by their keys, to be aggregated."""
        return Grouped(self)

    def group_by(self, key: Expression) -> Grouped:
        """The records by another key, to be aggregated."""
        return Grouped(self._by(key))

    def join(
        self,
        other: Stream | Table | GlobalTable,
        *,
        on: Expression | None = None,
        within: Duration | tuple[Duration, Duration] | None = None,
        grace: Duration = "0 s",
        late: Late = "drop",
        prefix: str = "",
        name: str | None = None,
    ) -> Stream:
        """The records with the fields of the other side's record under the same key; those without one end here.

        `on` is the key of this side. With a stream, `within` is how far apart the times may be, or how much earlier and
        how much later the other side's may be; `late` is for records that come too late for that: `drop`, or
        `dead-letter` for the policy for failures. `prefix` is for the names of the other side's fields.
        """
        return self._join(other, "join", on, within, grace, prefix, name, late, keeps=(False, False))

    def left_join(
        self,
        other: Stream | Table | GlobalTable,
        *,
        on: Expression | None = None,
        within: Duration | tuple[Duration, Duration] | None = None,
        grace: Duration = "0 s",
        late: Late = "drop",
        prefix: str = "",
        name: str | None = None,
    ) -> Stream:
        """The result of `join`, with this stream's records that have no partner, when none can come any more."""
        return self._join(other, "left-join", on, within, grace, prefix, name, late, keeps=(True, False))

    def outer_join(
        self,
        other: Stream,
        *,
        within: Duration | tuple[Duration, Duration],
        on: Expression | None = None,
        grace: Duration = "0 s",
        late: Late = "drop",
        prefix: str = "",
        name: str | None = None,
    ) -> Stream:
        """The result of `join`, with the records of both streams that have no partner, when none can come any more."""
        return self._join(other, "outer-join", on, within, grace, prefix, name, late, keeps=(True, True))

    def deduplicate(self, *, within: Duration, by: Expression = "key", name: str | None = None) -> Stream:
        """The first of the records with one id within a time; records with one id must have one key.

        A record older than that, by the times of the records before it, is dropped and counted.
        """
        name = self._builder._named(name, "deduplicate")
        node = nodes.Deduplicate(
            name, (self._placed().name,), id=by, within_ms=self._builder._duration(name, within, least=1)
        )
        return self._builder._add(node, keyed_by=self._keyed_by)

    def to_table(self, *, name: str | None = None) -> Table:
        """A table of the latest value of each key."""
        name = self._builder._named(name, "to-table")
        return self._builder._table(nodes.ToTable(name, (self._placed().name,)))

    def to(self, topic: _Topic, *, value: Serde | None = None, key: Key | None = None, name: str | None = None) -> None:
        """Publishes each record to a topic, constant or computed from the record; if NULL, publishes nothing.

        Without `value`, values that are bytes or one text are published as they are, others as JSON. So are keys
        without `key`.
        """
        name = self._builder._named(name, "to")
        self._builder._add(nodes.SinkNode(name, (self.name,), topic=topic, value=value, key=key))

    def _then(self, node: Node) -> Stream:
        return self._builder._add(node, keyed_by=self._keyed_by, is_moved=self._is_moved)

    def _by(self, key: Expression, like: str | None = None) -> Stream:
        """The stream with another key; the same stream if it has this key."""
        if isinstance(key, str) and key == self._keyed_by:
            return self
        return self._keyed(self._builder._named(None, "select-key"), key, like)

    def _keyed(self, name: str, key: Expression, like: str | None = None) -> Stream:
        stream, made = self._computed(name, key)
        node = nodes.SelectKey(name, (stream.name,), key=made, like=like)
        keyed = self._builder._add(node, keyed_by=key if isinstance(key, str) else None, is_moved=True)
        return keyed if stream is self else keyed._without_last_field(name)

    def _filter(self, kind: str, condition: Expression, name: str | None, *, is_negated: bool) -> Stream:
        name = self._builder._named(name, kind)
        stream, made = self._computed(name, condition)
        passed = stream._then(nodes.Filter(name, (stream.name,), condition=made, is_negated=is_negated))
        return passed if stream is self else passed._without_last_field(name)

    def _computed(self, name: str, expression: Expression) -> tuple[Stream, Expression]:
        """The stream with the result of a Python function in a field, and an expression for it; others as they are."""
        if not isinstance(expression, PythonFunction):
            return self, expression
        column = f"{name}-python"
        stream = self._then(nodes.PythonColumn(column, (self.name,), column=column, function=expression))
        return stream, lambda row: row[column]

    def _without_last_field(self, name: str) -> Stream:
        return self._then(nodes.DropField(f"{name}-fields", (self.name,)))

    def _placed(self, name: str | None = None) -> Stream:
        """The stream with all records of a key in one partition."""
        return self.repartition(name=name) if self._is_moved else self

    def _join(
        self,
        other: Stream | Table | GlobalTable,
        kind: str,
        on: Expression | None,
        within: Duration | tuple[Duration, Duration] | None,
        grace: Duration,
        prefix: str,
        name: str | None,
        late: Late,
        *,
        keeps: tuple[bool, bool],
    ) -> Stream:
        builder = self._builder
        name = builder._named(name, kind)
        builder._is_own(name, other)
        if within is not None and not isinstance(other, Stream):
            builder._fault(name, "`within` is for the join of two streams")
        rejects = builder._rejects(name, late)
        if rejects and not isinstance(other, Stream):
            builder._fault(name, "`late` is for the join of two streams: with a table no record is late")
        if isinstance(other, GlobalTable):
            parents = (self.name, other.name)
            return self._then(nodes.JoinGlobal(name, parents, keeps_left=keeps[0], prefix=prefix, on=on))
        left = (self if on is None else self._by(on, other.name))._placed()
        if isinstance(other, Table):
            parents = (left.name, other._kept(name).name)
            node: Node = nodes.JoinTable(name, parents, keeps_left=keeps[0], prefix=prefix)
        else:
            right = other._placed()
            times = builder._join_times(name, within, grace)
            node = nodes.stream_join(name, (left.name, right.name), times, keeps, prefix, rejects_late=rejects)
        return builder._add(node, keyed_by=left._keyed_by)


class Grouped(Guided):
    """Records of a stream by their keys; `windowed_by` groups them by windows of time as well."""

    def __init__(self, stream: Stream, windows: Windows | None = None, *, rejects_late: bool = False) -> None:
        self._stream = stream
        self._windows = windows
        self._rejects_late = rejects_late

    def windowed_by(self, windows: Windows, *, late: Late = "drop") -> Grouped:
        """The records of each key by windows of time; TypeError for other values.

        `late` is for records that no window takes any more: `drop`, or `dead-letter` for the policy for failures.
        """
        check_windows(windows)
        return Grouped(self._stream, windows, rejects_late=self._stream._builder._rejects(self._stream.name, late))

    def count(self, name: str | None = None) -> Table:
        """The number of records, in the field `count`."""
        return self._aggregate("count", {"count": "count(1)"}, name)

    def reduce(self, name: str | None = None, /, **columns: str | Column) -> Table:
        """Aggregates of the records' own types, such as `amount=F.max("amount")`; otherwise `aggregate`."""
        return self._aggregate("reduce", columns, name)

    def aggregate(self, name: str | None = None, /, **columns: str | Column) -> Table:
        """Aggregates under their names, as text of Spark SQL or Columns: `total=F.sum("amount")`, `last="max(time)"`.

        The fields of a windowed aggregate begin with `window_start` and `window_end`.
        """
        return self._aggregate("aggregate", columns, name)

    def _aggregate(self, kind: str, columns: Mapping[str, str | Column], name: str | None) -> Table:
        check_aggregates(kind, columns, name)
        builder = self._stream._builder
        name = builder._named(name, kind)
        if not columns:
            builder._fault(name, "it aggregates nothing: name the results, such as total=F.sum('amount')")
        parent = self._stream._placed()
        node = nodes.Aggregate(
            name, (parent.name,), columns=columns, windows=self._windows, rejects_late=self._rejects_late
        )
        return builder._table(node, windows=self._windows)


class Table(Guided):
    """Table: the latest value of each key, or of each key and window, and its changes."""

    def __init__(
        self, builder: StreamsBuilder, name: str, *, windows: Windows | None = None, is_kept: bool = True
    ) -> None:
        self._builder = builder
        self.name = name
        self._windows = windows
        self._is_kept = is_kept
        """True if the node itself keeps the values, so that they can be looked up."""

    def filter(self, condition: Expression, *, name: str | None = None) -> Table:
        """The rows for which the condition is true; a row that it takes no longer is removed."""
        return self._filter("filter", condition, name, is_negated=False)

    def filter_not(self, condition: Expression, *, name: str | None = None) -> Table:
        """The rows for which the condition is not true."""
        return self._filter("filter-not", condition, name, is_negated=True)

    def map_values(self, name: str | None = None, /, **fields: Expression) -> Table:
        """The rows with these fields instead of theirs, each an expression of the present fields."""
        refuse_functions("map_values", name)
        name = self._builder._named(name, "map-values")
        return self._then(nodes.MapValues(name, (self.name,), fields=fields, is_table=True))

    def suppress(self, *, until: Expression | None = None, close: Close = "stream-time") -> Table:
        """The final results alone, each when its window and grace have ended; without windows, the last of each batch.

        `until` is a condition on the result: when it first becomes true, the result is given once before, too. With
        `close="clock"` the clock ends windows, too, though no record comes any more.
        """
        self._builder._suppress(self.name, until, close)
        return self

    def expire_after(self, ttl: Duration) -> Table:
        """The table, from which a row is removed when stream time is later than its last update by more than `ttl`."""
        self._builder._expire(self.name, ttl)
        return self

    def keep_history(self, history: Duration) -> Table:
        """The table, of which joins with streams take the row of the record's time, for so much stream time back."""
        self._builder._keep_history(self.name, history)
        return self

    def join(self, other: Table, *, on: Expression | None = None, prefix: str = "", name: str | None = None) -> Table:
        """The rows with the fields of the other table's row under the same key; those without one are not in it.

        `on` is another key in the other table, computed from the row (a foreign key); the result keeps the row's own.
        `prefix` is for the names of the other table's fields.
        """
        return self._join(other, "join", on, prefix, name, (False, False))

    def left_join(
        self, other: Table, *, on: Expression | None = None, prefix: str = "", name: str | None = None
    ) -> Table:
        """The result of `join`, with this table's rows that have no partner."""
        return self._join(other, "left-join", on, prefix, name, (True, False))

    def outer_join(self, other: Table, *, prefix: str = "", name: str | None = None) -> Table:
        """The result of `join`, with the rows of both tables that have no partner."""
        return self._join(other, "outer-join", None, prefix, name, (True, True))

    def group_by(self, key: Expression) -> GroupedTable:
        """The rows by groups other than their key, to be aggregated."""
        return GroupedTable(self, key)

    def to_stream(self, *, name: str | None = None) -> Stream:
        """The changes of the table as a stream; a removed row is a record without a value.

        Rows of windows that are removed, since their session became part of a longer one, are left out.
        """
        name = self._builder._named(name, "to-stream")
        return self._builder._add(nodes.ToStream(name, (self.name,), keeps_removals=self._windows is None))

    def to(self, topic: str, *, value: Serde | None = None, key: Key | None = None, name: str | None = None) -> None:
        """Publishes the changes of the table, as `to_stream().to(…)`."""
        self.to_stream().to(topic, value=value, key=key, name=name)

    def changelog(
        self, topic: str, *, value: Serde | None = None, key: Key | None = None, name: str | None = None
    ) -> Table:
        """Publishes each change to a compacted topic, from which others can read the whole table; returns the table.

        A removed row is a record without a value. Rows of windows have keys of their own, such as the JSON
        `{"key":"ann","window_start":"2026-01-01T12:00:00.000Z"}`. The topic is created when the topology starts.
        """
        name = self._builder._named(name, "changelog")
        changes = self
        if self._windows is not None:
            node = nodes.SelectKey(f"{name}-key", (self.name,), key=lambda _: F.struct("key", "window_start"))
            changes = self._then(node)
        stream = self._builder._add(nodes.ToStream(f"{name}-changes", (changes.name,)))
        self._builder._add(nodes.SinkNode(name, (stream.name,), topic=topic, value=value, key=key, is_compacted=True))
        return self

    def _filter(self, kind: str, condition: Expression, name: str | None, *, is_negated: bool) -> Table:
        name = self._builder._named(name, kind)
        return self._then(nodes.Filter(name, (self.name,), condition=condition, is_negated=is_negated, is_table=True))

    def _then(self, node: Node) -> Table:
        return self._builder._table(node, windows=self._windows, is_kept=False)

    def _kept(self, asking: str) -> Table:
        """The table with its values kept, for look-ups by the node `asking`."""
        if self._windows is not None:
            self._builder._fault(asking, f"'{self.name}' has windows: make it a stream with to_stream first")
        if self._is_kept:
            return self
        return self._builder._table(nodes.ToTable(self._builder._named(None, "to-table"), (self.name,)))

    def _join(
        self,
        other: Table,
        kind: str,
        on: Expression | None,
        prefix: str,
        name: str | None,
        keeps: tuple[bool, bool],
    ) -> Table:
        name = self._builder._named(name, kind)
        self._builder._is_own(name, other)
        parents = (self._kept(name).name, other._kept(name).name)
        if on is not None:
            return self._builder._table(nodes.JoinForeign(name, parents, keeps_left=keeps[0], prefix=prefix, on=on))
        joined = nodes.JoinTables(name, parents, keeps_left=keeps[0], keeps_right=keeps[1], prefix=prefix)
        return self._builder._table(joined, is_kept=False)


class GroupedTable(Guided):
    """Rows of a table by groups other than their key."""

    def __init__(self, table: Table, key: Expression) -> None:
        self._table = table
        self._key = key

    def count(self, name: str | None = None) -> Table:
        """The number of rows of each group, in the field `count`."""
        return self._aggregate("count", {"count": "count(1)"}, name)

    def aggregate(self, name: str | None = None, /, **columns: str | Column) -> Table:
        """Aggregates of the present rows of each group, as `Grouped.aggregate`."""
        return self._aggregate("aggregate", columns, name)

    def _aggregate(self, kind: str, columns: Mapping[str, str | Column], name: str | None) -> Table:
        check_aggregates(kind, columns, name)
        builder = self._table._builder
        name = builder._named(name, kind)
        kept = self._table._kept(name)
        return builder._table(nodes.GroupTable(name, (kept.name,), group=self._key, columns=columns))
