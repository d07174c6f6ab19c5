"""Public names of topologies: builders, expressions, serdes, windows, and the test driver.

A topology is built and checked without a session; `jms-bridge topology run` runs it on Kafka, with state, and
`TopologyTestDriver` without a broker. What the names mean is in the modules of `engine.topologies.library`.
"""

from engine.topologies.library.driver import Output, TopologyTestDriver
from engine.topologies.library.dsl import GlobalTable, Grouped, GroupedTable, Stream, StreamsBuilder, Table
from engine.topologies.library.nodes import Expression, RowFunction
from engine.topologies.library.program import Program, plan
from engine.topologies.library.python_functions import InputRecord, ProcessorContext, PythonFunction, python
from engine.topologies.library.row import HeaderView, Row
from engine.topologies.library.schema_serdes import SchemaSerde, avro, json_schema, protobuf
from engine.topologies.library.serdes import KeyKind, Serde, binary, json, text
from engine.topologies.library.state import NodeState, StateError
from engine.topologies.library.topology import Topology, TopologyError
from engine.topologies.library.windows import CalendarWindows, Duration, SessionWindows, SlidingWindows, TimeWindows

__all__ = [
    "CalendarWindows",
    "Duration",
    "Expression",
    "GlobalTable",
    "Grouped",
    "GroupedTable",
    "HeaderView",
    "InputRecord",
    "KeyKind",
    "NodeState",
    "Output",
    "ProcessorContext",
    "Program",
    "PythonFunction",
    "Row",
    "RowFunction",
    "SchemaSerde",
    "Serde",
    "SessionWindows",
    "SlidingWindows",
    "StateError",
    "Stream",
    "StreamsBuilder",
    "Table",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "avro",
    "binary",
    "json",
    "json_schema",
    "plan",
    "protobuf",
    "python",
    "text",
]
