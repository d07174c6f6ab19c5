package jmsbridge.streams;

import java.io.ByteArrayOutputStream;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Run of a program over the records of one share of the partitions, with its own state. */
final class Task {
  /** Kind of the entry with the time of the clock up to which all is done; it is that of no node. */
  private static final char CLOCK = 'k';

  private final Program program;
  private final Store store;
  private final TaskContext context;
  /** The time of the clock up to which all is done. */
  private long reached = Positions.NEVER;
  private boolean isSaved = true;

  /** Opens the nodes of a program, which is this task's own copy; {@code python} is the task's as long as it works. */
  Task(Program program, Store store, Output output, PythonWorker python, ClockReadings readings) {
    this.program = program;
    this.store = store;
    context = new TaskContext(program, store, output, python, readings);
    program.nodes().forEach(each -> each.open(context));
    byte[] kept = program.followsClock() ? store.get(clockKey().done()) : null;
    if (kept != null) {
      reached = new Keys.Reader(kept).number();
    }
  }

  /** Opens the nodes of a program for looks at a state, which nothing changes. */
  Task(Program program, Store store) {
    this(program, store, null, null, null);
  }

  private static Keys clockKey() {
    return Keys.of(0, CLOCK);
  }

  /** Moves the stream time of all nodes on to a time. */
  void advance(long to) {
    for (Node each : program.nodes()) {
      if (each instanceof StatefulNode stateful) {
        stateful.advance(to);
      }
    }
  }

  /** Says whether the records are those of a batch, at whose end nodes are flushed. */
  void batch(boolean is) {
    context.batch(is);
  }

  /** Says what the clock shows to functions that ask. */
  void clock(long now) {
    context.clock(now);
  }

  /** The time of the clock at which a node has something to do; the greatest: none. */
  long due() {
    long due = Long.MAX_VALUE;
    for (Node each : program.nodes()) {
      if (each instanceof StatefulNode stateful && stateful.followsClock()) {
        due = Math.min(due, stateful.due());
      }
    }
    return due;
  }

  /** Has nodes do what is due up to a time of the clock, in the order of the times, whatever the nodes. */
  void tick(long clock) {
    flush();
    context.begin(null);
    for (long due = due(); due <= clock; due = due()) {
      for (Node each : program.nodes()) {
        if (each instanceof StatefulNode stateful && stateful.followsClock()) {
          stateful.tick(due);
        }
      }
      flush();
    }
    reached = clock;
    isSaved = false;
  }

  /** The time of the clock up to which all is done; {@link Positions#NEVER}: the clock has made nothing due yet. */
  long reached() {
    return reached;
  }

  void process(ConsumerRecord<byte[], byte[]> record) {
    context.begin(record);
    Node source = program.source(record.topic());
    StreamRecord read = context.read();
    try {
      source.process(read, 0);
    } catch (EvaluationException failure) {
      context.reject(source.name, read, failure);
    }
  }

  /** Sends a record to the dead letters unprocessed, whatever the policy: somebody has told to set it aside. */
  void setAside(ConsumerRecord<byte[], byte[]> record) {
    context.begin(record);
    context.setAside(program.source(record.topic()).name);
  }

  /** Leaves a record of a global table that cannot be read to the policy for failures. */
  void reject(GlobalTable.Unread unread) {
    unread.reject(context);
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
    StateScan entries = new StateScan(node, question.range(), question.from());
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
    if (!isSaved) {
      store.put(clockKey().done(), clockKey().number(reached).done());
      isSaved = true;
    }
  }
}
