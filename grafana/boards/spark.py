"""Spark and the processes: batches, checkpoint, memory, recoveries, and what each part takes from its machine."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from boards.frame import BRIDGE, frame
from boards.panels import draw, number
from boards.processes import processes

__all__ = ["spark"]


def spark() -> Dashboard:
    """The engine room."""
    board = frame(
        "spark", "JMS bridge: Spark and processes", "The engine room: batches, memory, recoveries, processes."
    )
    _glance(board)
    _batches(board)
    _memory(board)
    processes(board)
    _machine(board)
    return board


def _glance(board: Dashboard) -> None:
    board.with_row(Row("Spark at a glance")).with_panel(
        number(
            "Rows",
            "Journal records per second that Spark has read in completed batches. In real-time mode a batch is an "
            "interval of minutes, and so is the step of this figure.",
            "rps",
            f"sum(rate(jmsbridge_spark_processed_rows_total{{{BRIDGE}}}[$__rate_interval]))",
        )
    ).with_panel(
        number(
            "Last batch",
            "How long it took; in real-time mode as long as `router.interval`.",
            "s",
            f'max(jmsbridge_spark_batch_duration_seconds{{{BRIDGE}, phase="triggerExecution"}})',
        )
    ).with_panel(
        number(
            "Age of the checkpoint",
            "Since Spark has committed. What was published since is what a recovery would have to read.",
            "s",
            f"max(jmsbridge_spark_checkpoint_age_seconds{{{BRIDGE}}})",
        )
    ).with_panel(
        number(
            "Last recovery",
            "How long the router took, at its last start, to find out what had been published before.",
            "s",
            f"max(jmsbridge_recovery_duration_seconds{{{BRIDGE}}})",
            limits=[(60, "orange"), (120, "red")],
        )
    ).with_panel(
        number(
            "Last start",
            "From the start of the router's process until its query read the journal, and so routed.",
            "s",
            f'max(jmsbridge_router_start_seconds{{{BRIDGE}, until="ready"}})',
        )
    )


def _batches(board: Dashboard) -> None:
    board.with_row(Row("Batches and recoveries")).with_panel(
        draw(
            "Phases of a batch",
            "How long each phase of the last batch took, by Spark's name of it; triggerExecution is the whole.",
            "s",
            (f"max by (phase) (jmsbridge_spark_batch_duration_seconds{{{BRIDGE}}})", "{{phase}}"),
        )
    ).with_panel(
        draw(
            "Age of the checkpoint, over time",
            "A saw: it falls with each commit. If it only rises, Spark does not commit any more.",
            "s",
            (f"max by (instance) (jmsbridge_spark_checkpoint_age_seconds{{{BRIDGE}}})", "{{instance}}"),
        )
    ).with_panel(
        draw(
            "Batches",
            "Completed per second, and rows read in them.",
            "short",
            (f"sum(rate(jmsbridge_spark_batches_total{{{BRIDGE}}}[$__rate_interval]))", "batches"),
            (f"sum(rate(jmsbridge_spark_processed_rows_total{{{BRIDGE}}}[$__rate_interval]))", "rows"),
        )
    ).with_panel(
        draw(
            "Recoveries",
            "Per second: records that a recovery has read, and messages that it has published because the run before "
            "had left them out. Nothing here means that nothing crashed.",
            "short",
            (f"sum(rate(jmsbridge_recovery_scanned_records_total{{{BRIDGE}}}[$__rate_interval]))", "read"),
            (f"sum(rate(jmsbridge_recovery_published_messages_total{{{BRIDGE}}}[$__rate_interval]))", "published"),
            (f"sum(rate(jmsbridge_recovery_foreign_records_total{{{BRIDGE}}}[$__rate_interval]))", "of others"),
        )
    )


def _memory(board: Dashboard) -> None:
    board.with_row(Row("Spark's memory")).with_panel(
        draw(
            "Heap",
            "What the objects in Spark's JVM take, and what they may take: `spark.driver.memory`.",
            "bytes",
            (f"max by (instance) (jmsbridge_spark_heap_used_bytes{{{BRIDGE}}})", "{{instance}} used"),
            (f"max by (instance) (jmsbridge_spark_heap_max_bytes{{{BRIDGE}}})", "{{instance}} at most"),
        )
    ).with_panel(
        draw(
            "Garbage collection",
            "Share of the time that Spark's JVM spends on it. More than a tenth for long: raise `spark.driver.memory`.",
            "percentunit",
            (
                f"max by (instance) (rate(jmsbridge_spark_gc_seconds_total{{{BRIDGE}}}[$__rate_interval]))",
                "{{instance}}",
            ),
        )
    ).with_panel(
        draw(
            "Heap of executors",
            "On a cluster: what the objects in each executor take, what it has from its system, and what it may take: "
            "`spark.executor.memory`.",
            "bytes",
            *(
                (f"max by (instance, executor) (jmsbridge_spark_executor_heap_{name}_bytes{{{BRIDGE}}})", legend)
                for name, legend in (
                    ("used", "{{instance}} {{executor}} used"),
                    ("committed", "{{instance}} {{executor}} committed"),
                    ("max", "{{instance}} {{executor}} at most"),
                )
            ),
        )
    ).with_panel(
        draw(
            "Garbage collection of executors",
            "Share of the time that each executor spends on it. More than a tenth for long: raise "
            "`spark.executor.memory`.",
            "percentunit",
            (
                "max by (instance, executor) "
                f"(rate(jmsbridge_spark_executor_gc_seconds_total{{{BRIDGE}}}[$__rate_interval]))",
                "{{instance}} {{executor}}",
            ),
        )
    ).with_panel(
        draw(
            "Task slots",
            "Of each executor. Real-time mode needs one for each partition of the journal.",
            "short",
            (
                f"max by (instance, executor) (jmsbridge_spark_executor_task_slots{{{BRIDGE}}})",
                "{{instance}} {{executor}}",
            ),
            stacked=True,
        )
    )


def _machine(board: Dashboard) -> None:
    def gauge(name: str) -> tuple[str, str]:
        return f"sum by (component) (jmsbridge_process_{name}{{{BRIDGE}}})", "{{component}}"

    board.with_row(Row("What each process takes")).with_panel(
        draw(
            "Processor",
            "Cores in use, JVMs and servers included.",
            "short",
            (
                f"sum by (component) (rate(jmsbridge_process_cpu_seconds_total{{{BRIDGE}}}[$__rate_interval]))",
                "{{component}}",
            ),
            stacked=True,
        )
    ).with_panel(draw("Memory", "Resident.", "bytes", gauge("resident_memory_bytes"), stacked=True)).with_panel(
        draw("Open files", "Connections included. A line that only rises is a leak.", "short", gauge("open_fds"))
    ).with_panel(draw("Threads", "A line that only rises is a leak.", "short", gauge("threads"))).with_panel(
        draw(
            "Running since",
            "How long each process has been running.",
            "s",
            (
                f"time() - max by (component) (jmsbridge_process_start_time_seconds{{{BRIDGE}}})",
                "{{component}}",
            ),
            span=24,
        )
    )
