package jmsbridge.streams;

import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Settings of a topology's run.
 *
 * @param program the topology
 * @param isExact whether outputs and positions are written in transactions
 * @param partitions number of partitions of each topic that is read
 * @param consumer settings of Kafka's consumers
 * @param producer settings of Kafka's producers
 * @param folder where the state is kept, as a URI of Hadoop
 * @param mostRecords most records of a partition in one batch
 * @param commitMs milliseconds between two commits of outputs in real-time mode
 * @param dropped numbers under which former nodes kept state that is not needed any more
 * @param refused messages of {@link jmsbridge.kafka.RefusedRecordException} that ended earlier runs
 * @param firstBatches number of the first batch of each share that came after the first batch of all
 * @param skipped positions of records that go to the dead letters unprocessed, as {@code topic:partition:offset}
 * @param marks local folder for notes of the records under way; null: none are made
 * @param tables local folder for copies of RocksDB's tables, with the state on another file system; null: none
 * @param order what the nodes behind internal topics need of the order of the records
 */
public record RunSettings(
    Program program, boolean isExact, Map<String, Integer> partitions, Map<String, Object> consumer,
    Map<String, Object> producer, String folder, long mostRecords, long commitMs,
    List<Integer> dropped, List<String> refused, Map<Integer, Integer> firstBatches, List<String> skipped,
    String marks, String tables, ReadOrder order) implements Serializable {
  public RunSettings {
    // Maps of Python's side live as long as Python wants.
    partitions = new HashMap<>(partitions);
    consumer = new HashMap<>(consumer);
    producer = new HashMap<>(producer);
    dropped = List.copyOf(dropped);
    refused = List.copyOf(refused);
    firstBatches = Map.copyOf(firstBatches);
    skipped = List.copyOf(skipped);
  }

  /** The settings of a first run, whose shares all begin with the first batch. */
  public RunSettings(
      Program program, boolean isExact, Map<String, Integer> partitions, Map<String, Object> consumer,
      Map<String, Object> producer, String folder, long mostRecords, long commitMs, List<Integer> dropped) {
    this(program, isExact, partitions, consumer, producer, folder, mostRecords, commitMs, dropped, List.of(), Map.of(),
        List.of(), null, null, ReadOrder.none());
  }

  int shares() {
    return partitions.values().stream().mapToInt(Integer::intValue).max().orElse(0);
  }

  /** Number of shares that read topics which feed internal ones. */
  int feeders() {
    return partitions.entrySet().stream().filter(each -> order.isFeeder(each.getKey())).mapToInt(Map.Entry::getValue)
        .max().orElse(0);
  }

  int firstBatch(int share) {
    return firstBatches.getOrDefault(share, 0);
  }

  boolean isSkipped(ConsumerRecord<byte[], byte[]> record) {
    return !skipped.isEmpty() && skipped.contains(TaskContext.position(record.topic(), record.partition(), record.offset()));
  }

  String group() {
    return program.name();
  }

  /** The same settings with transactions. */
  RunSettings exact() {
    return new RunSettings(
        program, true, partitions, consumer, producer, folder, mostRecords, commitMs, dropped, refused, firstBatches,
        skipped, marks, tables, order);
  }

  /** Settings of a consumer that knows the committed positions of the topology. */
  Map<String, Object> groupConsumer() {
    Map<String, Object> own = new HashMap<>(consumer);
    own.put("group.id", group());
    return own;
  }
}
