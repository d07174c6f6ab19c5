package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Run of a program over the records of one share of the partitions, with its own state. */
final class Task {
  private final Program program;
  private final Store store;
  private final TaskContext context;

  /** Opens the nodes of a program, which is this task's own copy; {@code python} is the task's as long as it works. */
  Task(Program program, Store store, Output output, PythonWorker python) {
    this.program = program;
    this.store = store;
    context = new TaskContext(program, store, output, python);
    program.nodes().forEach(each -> each.open(context));
  }

  /** Moves the stream time of all nodes on to a time. */
  void advance(long to) {
    for (Node each : program.nodes()) {
      if (each instanceof StatefulNode stateful) {
        stateful.advance(to);
      }
    }
  }

  void process(ConsumerRecord<byte[], byte[]> record) {
    context.begin(record);
    program.source(record.topic()).process(context.read(), 0);
  }

  /** Sends a record to the dead letters unprocessed, whatever the policy: somebody has told to set it aside. */
  void setAside(ConsumerRecord<byte[], byte[]> record) {
    context.begin(record);
    context.setAside(program.source(record.topic()).name);
  }

  /** Counts an event of a node. */
  void count(String node, String event) {
    context.count(node, event);
  }

  /** Goes on with the numbers of events of an earlier task. */
  void goOnCounting(Map<String, Long> before) {
    context.goOnCounting(before);
  }

  /** Numbers of events so far, each under the name of its node, a tab and the event; from any thread. */
  Map<String, Long> counts() {
    return context.counts();
  }

  /** Rows of the state of a node. */
  StatePage state(StatePage.Question question) {
    StatefulNode node = program.stateful(question.node());
    StateScan entries = new StateScan(node, question.range(), store, question.from());
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    int rows = 0;
    while (entries.hasNext()) {
      Store.Entry entry = entries.next();
      if (rows == question.most() || lines.size() >= question.mostBytes()) {
        return new StatePage(lines.toByteArray(), rows, entry.key());
      }
      StreamRecord shown = node.shown(entry);
      if (shown != null) {
        lines.writeBytes(program.shown(node.name).apply(shown, shown.value()).getBinary(0));
        lines.write('\n');
        rows++;
      }
    }
    return new StatePage(lines.toByteArray(), rows, null);
  }

  /** Has nodes forward what waits in them, those in front first. */
  void flush() {
    program.nodes().forEach(Node::flush);
  }

  void release() {
    program.nodes().forEach(Node::release);
  }

  /** Writes what nodes keep in memory into the store. */
  void save() {
    program.nodes().forEach(Node::save);
  }
}
