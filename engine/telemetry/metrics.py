"""Table of all metrics of the bridge, with labels and help texts; `reference` makes `docs/metrics.md` from it.

`engine.telemetry.meters` fills the metrics in, `exposition` merges those of all processes, `http` serves them. Label
values come from the configuration, from Spark or from the lists here, never from messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from routes.sections import HELD

__all__ = [
    "ACKNOWLEDGED",
    "BUILD_INFO",
    "CERTIFICATE_END",
    "COMPONENT_PAUSED",
    "COMPONENT_UP",
    "CONFIG_INFO",
    "CONFIG_RELOAD_SUCCESS",
    "CONFIG_RELOAD_TIMESTAMP",
    "CONNECTION_UP",
    "DEAD_LETTERS",
    "DEAD_LETTER_AGE",
    "DEAD_LETTER_REASONS",
    "DELIVERED",
    "DISK_FREE",
    "DUPLICATES",
    "EXECUTOR_GC",
    "EXECUTOR_HEAP_COMMITTED",
    "EXECUTOR_HEAP_MAX",
    "EXECUTOR_HEAP_USED",
    "EXECUTOR_SLOTS",
    "FAILED",
    "FAILURE_REASONS",
    "HAS_LEADER",
    "JOURNALED",
    "LAG_RECORDS",
    "LAG_SECONDS",
    "LATENCY",
    "LATENCY_AVERAGE",
    "LATENCY_BUCKETS_SECONDS",
    "LEADER",
    "LOST",
    "METRICS",
    "NO_ROUTE",
    "OTHER_ADDRESSES",
    "PROCESS_CPU",
    "PROCESS_FILES",
    "PROCESS_MEMORY",
    "PROCESS_START",
    "PROCESS_THREADS",
    "PUBLISH_REASONS",
    "QUARANTINED",
    "RECEIVED",
    "RECONNECTS",
    "RECOVERY_FOREIGN",
    "RECOVERY_PUBLISHED",
    "RECOVERY_SCANNED",
    "RECOVERY_SECONDS",
    "REJECTED",
    "REJECTION_REASONS",
    "REPLIES",
    "REQUESTS",
    "REQUEST_TIMEOUTS",
    "RESTARTS",
    "RETENTION",
    "ROUTED",
    "ROUTER_START",
    "SINK_EXPIRED",
    "SINK_LAG",
    "SINK_NOT_KEPT",
    "SINK_RECONNECTS",
    "SINK_REJECTED",
    "SINK_REJECTION_REASONS",
    "SOURCE_NOT_KEPT",
    "SOURCE_WAITING",
    "SPARK_BATCHES",
    "SPARK_BATCH_SECONDS",
    "SPARK_CHECKPOINT_AGE",
    "SPARK_GC",
    "SPARK_HEAP_MAX",
    "SPARK_HEAP_USED",
    "SPARK_ROWS",
    "TOPOLOGY_LAG",
    "TOPOLOGY_RECORDS",
    "TOPOLOGY_STATE",
    "TOPOLOGY_UNPROCESSED",
    "UNIDENTIFIED",
    "UNMATCHED",
    "UNMATCHED_BY_ADDRESS",
    "UNROUTED",
    "UNROUTED_REASONS",
    "Metric",
    "MetricType",
]


class MetricType(StrEnum):
    """Prometheus' type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of the bridge: one row of the table below."""

    name: str
    """The name as scraped, with unit and `_total`; a histogram adds `_bucket`, `_sum` and `_count`."""
    kind: MetricType
    labels: tuple[str, ...]
    help: str


FAILURE_REASONS = (
    "key-not-found",
    "key-invalid",
    "body-not-convertible",
    "body-unreadable",
    "body-invalid",
    "destination-unresolved",
    "too-large",
)
"""Reasons for which a message fails in a route."""
PUBLISH_REASONS = ("not-published",)
"""Reasons for which Kafka does not take a message: with `on-soft-failure=skip` it is skipped, else a dead letter."""
UNMATCHED = "unmatched"
"""Reason of a message that no route takes."""
OTHER_ADDRESSES = "(others)"
"""Value of the label `address` for the addresses that are not told apart."""
RETENTION = "retention"
"""Reason of records that retention removed before they were read."""

UNROUTED_REASONS = (UNMATCHED, "expired", "own-origin", "non-durable", RETENTION, HELD)
"""Reasons for which a message is passed over without being a failure."""
SINK_REJECTION_REASONS = ("refused",)
"""Reasons for which a sink cannot deliver a message: with `on-soft-failure=skip` it is skipped, else a dead letter."""
REJECTION_REASONS = ("too-large", "unreadable")
"""Reasons for which a message cannot enter the journal.

With `routing.on-soft-failure=skip` the message is skipped, else it becomes a dead letter.
"""
DEAD_LETTER_REASONS = tuple(
    dict.fromkeys((*FAILURE_REASONS, *PUBLISH_REASONS, UNMATCHED, *SINK_REJECTION_REASONS, *REJECTION_REASONS, HELD))
)
"""Reasons of dead letters, of routes, sinks and sources together."""
NO_ROUTE = "-"
"""Value of the label `route`, and name in filters, for a message that no route wanted or that failed before routing."""
LATENCY_BUCKETS_SECONDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Upper bounds without +Inf: from real-time mode (milliseconds) over batches (seconds) to a stuck interval."""


LATENCY = Metric(
    "jmsbridge_routing_latency_seconds",
    MetricType.HISTOGRAM,
    (),
    "Time from a message's arrival in the journal to its routing and conversion.",
)
LATENCY_AVERAGE = Metric(
    "jmsbridge_routing_latency_average_seconds",
    MetricType.GAUGE,
    (),
    "Average routing latency of the last minute; NaN while nothing was routed in it.",
)
ROUTED = Metric(
    "jmsbridge_routed_messages_total",
    MetricType.COUNTER,
    ("route", "topic"),
    "Messages routed and converted for a destination topic.",
)
FAILED = Metric(
    "jmsbridge_failed_messages_total",
    MetricType.COUNTER,
    ("route", "destination", "reason", "policy"),
    "Messages that failed softly, by destination of the route as the configuration has it, without the values of a "
    "template, and by policy (stop, skip or dead-letter); route and destination are "
    f"{NO_ROUTE} if no route matched the message.",
)
UNROUTED = Metric(
    "jmsbridge_unrouted_messages_total",
    MetricType.COUNTER,
    ("reason",),
    "Messages not routed, without a failure: no route matched, they had expired, came from this bridge, were not "
    "durable, the journal's retention removed them first, or their route is paused and holds them as dead letters.",
)
UNMATCHED_BY_ADDRESS = Metric(
    "jmsbridge_unmatched_messages_total",
    MetricType.COUNTER,
    ("address",),
    "Messages that no route took and that were only counted, by address. 100 addresses are told apart; the messages to "
    f"all others have the address {OTHER_ADDRESSES}. These messages are also in `jmsbridge_unrouted_messages_total`.",
)
LAG_RECORDS = Metric(
    "jmsbridge_journal_lag_records",
    MetricType.GAUGE,
    ("partition",),
    "Journal records that are not routed yet.",
)
LAG_SECONDS = Metric(
    "jmsbridge_journal_lag_seconds",
    MetricType.GAUGE,
    (),
    "Age of the oldest journal record that is not routed yet; 0 when there is none.",
)
DEAD_LETTERS = Metric(
    "jmsbridge_dead_letters",
    MetricType.GAUGE,
    ("reason",),
    "Open dead letters: neither replayed nor discarded nor in quarantine; the reason is other for records that the "
    "bridge did not write. Read from the topics, so correct after any restart.",
)
DEAD_LETTER_AGE = Metric(
    "jmsbridge_dead_letters_oldest_seconds",
    MetricType.GAUGE,
    (),
    "Age of the oldest open dead letter; 0 when there is none.",
)
QUARANTINED = Metric(
    "jmsbridge_dead_letters_quarantined",
    MetricType.GAUGE,
    (),
    "Open messages in quarantine: failed again after `routing.max-replays` replays, not replayed or discarded.",
)
RECEIVED = Metric(
    "jmsbridge_source_received_messages_total",
    MetricType.COUNTER,
    ("source",),
    "Messages delivered by the broker, redeliveries included.",
)
JOURNALED = Metric(
    "jmsbridge_source_journaled_messages_total",
    MetricType.COUNTER,
    ("source",),
    "Messages that the journal has confirmed.",
)
ACKNOWLEDGED = Metric(
    "jmsbridge_source_acknowledged_messages_total",
    MetricType.COUNTER,
    ("source",),
    "Messages acknowledged to the broker, after the journal had them.",
)
REJECTED = Metric(
    "jmsbridge_source_rejected_messages_total",
    MetricType.COUNTER,
    ("source", "reason"),
    "Messages that could not enter the journal, by reason.",
)
LOST = Metric(
    "jmsbridge_source_lost_records_total",
    MetricType.COUNTER,
    ("source",),
    "Records that Kafka removed from a topic before a source had read them.",
)
DUPLICATES = Metric(
    "jmsbridge_source_duplicates_total",
    MetricType.COUNTER,
    ("source",),
    "Messages that the broker delivered again although the journal had them: acknowledged and left out.",
)
UNIDENTIFIED = Metric(
    "jmsbridge_source_unidentified_messages_total",
    MetricType.COUNTER,
    ("source",),
    "Messages taken without a message id: should the broker deliver one of them again, the journal has it twice.",
)
SOURCE_NOT_KEPT = Metric(
    "jmsbridge_source_headers_not_kept_total",
    MetricType.COUNTER,
    ("source",),
    "Headers and properties of received messages that could not be kept as they were; the log names some of them.",
)
SOURCE_WAITING = Metric(
    "jmsbridge_source_waiting_messages",
    MetricType.GAUGE,
    ("source",),
    "Messages that wait at a source's system, not acknowledged yet; absent while the system does not tell it.",
)
RECONNECTS = Metric(
    "jmsbridge_source_reconnects_total",
    MetricType.COUNTER,
    ("source",),
    "Connections of a source after its first one.",
)
DELIVERED = Metric(
    "jmsbridge_sink_delivered_messages_total",
    MetricType.COUNTER,
    ("sink",),
    "Messages that the system behind a sink has confirmed.",
)
SINK_REJECTED = Metric(
    "jmsbridge_sink_rejected_messages_total",
    MetricType.COUNTER,
    ("sink", "reason", "policy"),
    "Messages that the system behind a sink refused for good, by policy (skip or dead-letter).",
)
SINK_EXPIRED = Metric(
    "jmsbridge_sink_expired_messages_total",
    MetricType.COUNTER,
    ("sink",),
    "Messages dropped because they expired before the sink could deliver them, including late replies to requests.",
)
SINK_NOT_KEPT = Metric(
    "jmsbridge_sink_headers_not_kept_total",
    MetricType.COUNTER,
    ("sink",),
    "Headers and properties that the system behind a sink cannot carry; the log names some of them.",
)
SINK_LAG = Metric(
    "jmsbridge_sink_lag_records",
    MetricType.GAUGE,
    ("component",),
    "Routed messages that the system behind a sink has not confirmed yet.",
)
SINK_RECONNECTS = Metric(
    "jmsbridge_sink_reconnects_total",
    MetricType.COUNTER,
    ("sink",),
    "Connections of a sink after its first one.",
)
REQUESTS = Metric(
    "jmsbridge_sink_requests_total",
    MetricType.COUNTER,
    ("sink",),
    "Requests: messages sent with a reply address from which the bridge returns the reply.",
)
REPLIES = Metric(
    "jmsbridge_sink_replies_total",
    MetricType.COUNTER,
    ("sink",),
    "Replies to requests, late and repeated ones included.",
)
REQUEST_TIMEOUTS = Metric(
    "jmsbridge_sink_request_timeouts_total",
    MetricType.COUNTER,
    ("sink",),
    "Requests without a reply after `sink.NAME.reply-timeout`.",
)
CONNECTION_UP = Metric(
    "jmsbridge_connection_up",
    MetricType.GAUGE,
    ("component",),
    "1 while a component is connected to its broker: sources and sinks to theirs, the router to Kafka.",
)
COMPONENT_UP = Metric(
    "jmsbridge_component_up",
    MetricType.GAUGE,
    ("component",),
    "1 while a component's process runs and is ready.",
)
COMPONENT_PAUSED = Metric(
    "jmsbridge_component_paused",
    MetricType.GAUGE,
    ("component",),
    "1 while a component, or a route (`route:NAME`), is paused.",
)
RESTARTS = Metric(
    "jmsbridge_component_restarts_total",
    MetricType.COUNTER,
    ("component",),
    "Restarts of a component after its process died.",
)
LEADER = Metric(
    "jmsbridge_leader",
    MetricType.GAUGE,
    (),
    "1 while this bridge leads the bridges of its id, 0 while it stands by; absent where only sources or sinks run.",
)
HAS_LEADER = Metric(
    "jmsbridge_has_leader",
    MetricType.GAUGE,
    (),
    "1 while this bridge or another one of its id leads, according to Kafka; 0 while none is known to lead, for "
    "example because Kafka does not answer.",
)
CONFIG_INFO = Metric(
    "jmsbridge_config_info",
    MetricType.GAUGE,
    ("config_hash",),
    "Always 1; the label has the first 16 digits of the SHA-256 of the properties file in force.",
)
CONFIG_RELOAD_SUCCESS = Metric(
    "jmsbridge_config_last_reload_success",
    MetricType.GAUGE,
    (),
    "1 if the configuration took effect when it was last read, 0 if it was refused or revoked and the previous one "
    "stays in force.",
)
CONFIG_RELOAD_TIMESTAMP = Metric(
    "jmsbridge_config_last_reload_timestamp_seconds",
    MetricType.GAUGE,
    (),
    "Time at which the configuration was last read, in seconds since 1970; the start counts as well.",
)
SPARK_BATCHES = Metric(
    "jmsbridge_spark_batches_total",
    MetricType.COUNTER,
    (),
    "Batches that Spark has completed; in real-time mode intervals between two checkpoints.",
)
SPARK_BATCH_SECONDS = Metric(
    "jmsbridge_spark_batch_duration_seconds",
    MetricType.GAUGE,
    ("phase",),
    "Duration of each phase of the last completed batch, by Spark's name of the phase; triggerExecution is the whole.",
)
SPARK_ROWS = Metric(
    "jmsbridge_spark_processed_rows_total",
    MetricType.COUNTER,
    (),
    "Journal records that Spark has read in completed batches.",
)
SPARK_CHECKPOINT_AGE = Metric(
    "jmsbridge_spark_checkpoint_age_seconds",
    MetricType.GAUGE,
    (),
    "Time since Spark last committed to its checkpoint, or since the query began: the span that a recovery may have to "
    "read.",
)
SPARK_HEAP_USED = Metric(
    "jmsbridge_spark_heap_used_bytes",
    MetricType.GAUGE,
    (),
    "Heap used in Spark's JVM, garbage included.",
)
SPARK_HEAP_MAX = Metric(
    "jmsbridge_spark_heap_max_bytes",
    MetricType.GAUGE,
    (),
    "Maximum heap of Spark's JVM.",
)
SPARK_GC = Metric(
    "jmsbridge_spark_gc_seconds_total",
    MetricType.COUNTER,
    (),
    "Time that Spark's JVM has spent collecting garbage.",
)
EXECUTOR_SLOTS = Metric(
    "jmsbridge_spark_executor_task_slots",
    MetricType.GAUGE,
    ("executor",),
    "Tasks that an executor of Spark runs at once, by Spark's id of the executor; only on a cluster.",
)
EXECUTOR_HEAP_USED = Metric(
    "jmsbridge_spark_executor_heap_used_bytes",
    MetricType.GAUGE,
    ("executor",),
    "Heap used in an executor's JVM, garbage included.",
)
EXECUTOR_HEAP_COMMITTED = Metric(
    "jmsbridge_spark_executor_heap_committed_bytes",
    MetricType.GAUGE,
    ("executor",),
    "Heap that an executor's JVM has from its system.",
)
EXECUTOR_HEAP_MAX = Metric(
    "jmsbridge_spark_executor_heap_max_bytes",
    MetricType.GAUGE,
    ("executor",),
    "Maximum heap of an executor's JVM.",
)
EXECUTOR_GC = Metric(
    "jmsbridge_spark_executor_gc_seconds_total",
    MetricType.COUNTER,
    ("executor",),
    "Time that an executor's JVM has spent collecting garbage.",
)
ROUTER_START = Metric(
    "jmsbridge_router_start_seconds",
    MetricType.GAUGE,
    ("until",),
    "Time from the start of the router's process, or the end of the previous query, until the query reads the journal "
    "(`ready`) and until Kafka has the first routed message (`routed`); 0 before that.",
)
RECOVERY_SECONDS = Metric(
    "jmsbridge_recovery_duration_seconds",
    MetricType.GAUGE,
    (),
    "Duration of the last recovery, in which the router finds out what the previous query had published.",
)
RECOVERY_SCANNED = Metric(
    "jmsbridge_recovery_scanned_records_total",
    MetricType.COUNTER,
    (),
    "Records of destination topics read by recoveries; none after a clean stop.",
)
RECOVERY_PUBLISHED = Metric(
    "jmsbridge_recovery_published_messages_total",
    MetricType.COUNTER,
    (),
    "Messages published by recoveries because the previous run had left them out; they count as routed messages, too.",
)
RECOVERY_FOREIGN = Metric(
    "jmsbridge_recovery_foreign_records_total",
    MetricType.COUNTER,
    (),
    "Records that recoveries found in destination topics, and that name this bridge and its journal, but that the "
    "router did not write; they change nothing.",
)
TOPOLOGY_RECORDS = Metric(
    "jmsbridge_topology_records_total",
    MetricType.COUNTER,
    ("topology",),
    "Records that a topology has processed, those of its internal topics included.",
)
TOPOLOGY_UNPROCESSED = Metric(
    "jmsbridge_topology_unprocessed_records_total",
    MetricType.COUNTER,
    ("topology", "node", "reason"),
    "Records that a node of a topology did not process: late, repeated, without the key or value that the node needs, "
    "or rejected because they could not be read or computed.",
)
TOPOLOGY_LAG = Metric(
    "jmsbridge_topology_lag_records",
    MetricType.GAUGE,
    ("topology",),
    "Records of a topology's topics that it has not processed yet.",
)
TOPOLOGY_STATE = Metric(
    "jmsbridge_topology_state_bytes",
    MetricType.GAUGE,
    ("topology",),
    "Size of a topology's state in local files and in memory, as of its last commit.",
)
DISK_FREE = Metric(
    "jmsbridge_disk_free_bytes",
    MetricType.GAUGE,
    ("folder",),
    "Free space of the file system that a folder is on, by the key that names the folder, such as `embedded.data`.",
)
CERTIFICATE_END = Metric(
    "jmsbridge_certificate_expiry_timestamp_seconds",
    MetricType.GAUGE,
    ("file",),
    "Time at which a certificate of the configuration expires, in seconds since 1970, by its file. Of a file with "
    "authorities, the last one to expire counts.",
)
PROCESS_CPU = Metric(
    "jmsbridge_process_cpu_seconds_total",
    MetricType.COUNTER,
    ("component",),
    "Processor time of a component's processes, its JVM or server included.",
)
PROCESS_MEMORY = Metric(
    "jmsbridge_process_resident_memory_bytes",
    MetricType.GAUGE,
    ("component",),
    "Resident memory of a component's processes.",
)
PROCESS_FILES = Metric(
    "jmsbridge_process_open_fds",
    MetricType.GAUGE,
    ("component",),
    "Open files and connections of a component's processes.",
)
PROCESS_THREADS = Metric(
    "jmsbridge_process_threads",
    MetricType.GAUGE,
    ("component",),
    "Threads of a component's processes.",
)
PROCESS_START = Metric(
    "jmsbridge_process_start_time_seconds",
    MetricType.GAUGE,
    ("component",),
    "Start of a component's process, in seconds since 1970.",
)
BUILD_INFO = Metric(
    "jmsbridge_build_info",
    MetricType.GAUGE,
    ("version", "spark_version"),
    "Always 1; the versions are in the labels.",
)

METRICS: tuple[Metric, ...] = (
    *(LATENCY, LATENCY_AVERAGE, ROUTED, FAILED, UNROUTED, UNMATCHED_BY_ADDRESS, LAG_RECORDS, LAG_SECONDS),
    *(DEAD_LETTERS, DEAD_LETTER_AGE, QUARANTINED),
    *(RECEIVED, JOURNALED, DUPLICATES, UNIDENTIFIED, ACKNOWLEDGED, REJECTED, LOST, SOURCE_NOT_KEPT),
    *(SOURCE_WAITING, RECONNECTS),
    *(DELIVERED, SINK_REJECTED, SINK_EXPIRED, SINK_NOT_KEPT, SINK_LAG, SINK_RECONNECTS, REQUESTS, REPLIES),
    REQUEST_TIMEOUTS,
    *(CONNECTION_UP, COMPONENT_UP, COMPONENT_PAUSED, RESTARTS, LEADER, HAS_LEADER),
    *(SPARK_BATCHES, SPARK_BATCH_SECONDS, SPARK_ROWS, SPARK_CHECKPOINT_AGE, SPARK_HEAP_USED, SPARK_HEAP_MAX, SPARK_GC),
    *(EXECUTOR_SLOTS, EXECUTOR_HEAP_USED, EXECUTOR_HEAP_COMMITTED, EXECUTOR_HEAP_MAX, EXECUTOR_GC),
    *(ROUTER_START, RECOVERY_SECONDS, RECOVERY_SCANNED, RECOVERY_PUBLISHED, RECOVERY_FOREIGN),
    *(TOPOLOGY_RECORDS, TOPOLOGY_UNPROCESSED, TOPOLOGY_LAG, TOPOLOGY_STATE),
    *(PROCESS_CPU, PROCESS_MEMORY, PROCESS_FILES, PROCESS_THREADS, PROCESS_START),
    *(DISK_FREE, CERTIFICATE_END),
    *(CONFIG_INFO, CONFIG_RELOAD_SUCCESS, CONFIG_RELOAD_TIMESTAMP, BUILD_INFO),
)
"""All metrics, in the order of the documentation."""
