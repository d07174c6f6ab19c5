"""The topology engine: the processing of Kafka records as a value to be built, checked, described, run and tested.

`dsl` builds a topology from `nodes`, `windows` and `serdes`, `describe` prints it. There are two ways to run one:
`program` makes it a program of the engine, with state, which `driver` runs without a broker; `compile` makes a topology
without state a Spark query over a frame, which is the way of `engine.router`. `row` is the argument of a topology's
functions. The package knows records, Columns and Spark. What records mean is the business of its clients, which bring
conditions, choices of topics and a language for text.
"""

from engine.streams.compile import Compiled, compile_topology
from engine.streams.driver import Output, TopologyTestDriver
from engine.streams.dsl import GlobalTable, Grouped, GroupedTable, Stream, StreamsBuilder, Table
from engine.streams.nodes import Expression, RecordCondition, RowFunction, TextLanguage, TopicChoice
from engine.streams.program import Program, plan
from engine.streams.python_functions import InputRecord, ProcessorContext, PythonFunction, python
from engine.streams.row import HeaderView, Row
from engine.streams.schema_serdes import SchemaSerde, avro, protobuf
from engine.streams.serdes import KeyKind, Serde, binary, json, text
from engine.streams.state import NodeState, StateError
from engine.streams.topology import Topology, TopologyError
from engine.streams.windows import Duration, SessionWindows, SlidingWindows, TimeWindows

__all__ = [
    "Compiled",
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
    "RecordCondition",
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
    "TextLanguage",
    "TimeWindows",
    "TopicChoice",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "avro",
    "binary",
    "compile_topology",
    "json",
    "plan",
    "protobuf",
    "python",
    "text",
]
