package jmsbridge.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Source of journal records that no broker has, in the rows of the router's own reader, for the measurement of routes.
 *
 * <p>Options: {@code records}, {@code routes}, {@code partitions} {@code body}, the size of JSON bodies (0: none), and
 * {@code xml}, whether they are XML instead. Addresses and regions are those that the routes of
 * {@code bench/route_start.py} compare, in turn; headers are new objects for each record, as Kafka's consumer makes them.
 */
public final class MadeRecords implements TableProvider {
  private static final StructType SCHEMA = StructType.fromDDL("key BINARY, value BINARY, topic STRING, "
      + "partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
      + "headers ARRAY<STRUCT<key: STRING, value: BINARY>>");
  private static final String[] NAMES = {"jms.JMSMessageID", "jms.JMSDestination", "jms.JMSCorrelationID", "jms.region",
      "jms.amount", "jms.price", "jms.code"};
  /** Number of different records; they are repeated. */
  private static final int DIFFERENT = 10_000;

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new Made();
  }

  private record Made() implements SupportsRead {
    @Override
    public String name() {
      return "made";
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      int partitions = options.getInt("partitions", 1);
      int routes = options.getInt("routes", 1);
      int records = options.getInt("records", 1);
      int body = options.getInt("body", 0);
      boolean isXml = options.getBoolean("xml", false);
      return () -> new Ranges(partitions, records / partitions, routes, body, isXml);
    }
  }

  private record Range(int partition, int records, int routes, int body, boolean isXml) implements InputPartition {}

  private record Ranges(int partitions, int records, int routes, int body, boolean isXml) implements Scan, Batch {
    @Override
    public StructType readSchema() {
      return SCHEMA;
    }

    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return IntStream.range(0, partitions)
          .mapToObj(each -> new Range(each, records, routes, body, isXml)).toArray(Range[]::new);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Factory();
    }
  }

  private record Factory() implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition range) {
      return new Reader((Range) range);
    }
  }

  private static final class Reader implements PartitionReader<InternalRow> {
    private static final ByteBuffer NO_JSON = ByteBuffer.allocate(400);
    private final TopicPartition partition;
    private final int records;
    private final RecordRow row;
    private final byte[][] names = new byte[NAMES.length][];
    private final byte[][][] texts = new byte[DIFFERENT][][];
    private final ByteBuffer[] bodies = new ByteBuffer[DIFFERENT];
    private int next;

    Reader(Range range) {
      partition = new TopicPartition("journal", range.partition);
      records = range.records;
      row = new RecordRow(partition, true);
      for (int at = 0; at < names.length; at++) {
        names[at] = bytes(NAMES[at]);
      }
      for (int each = 0; each < Math.min(DIFFERENT, records); each++) {
        int route = each % range.routes;
        String[] values = {"ID:" + each, "queue:orders." + route, "c" + each, "r" + route % 7, "" + each % 1000,
            each % 99 + ".5", "k" + each};
        texts[each] = java.util.stream.Stream.of(values).map(Reader::bytes).toArray(byte[][]::new);
        bodies[each] = range.body == 0 ? NO_JSON : range.isXml ? xml(range.body, values) : json(range.body, values);
      }
    }

    /** A document with the values of the headers, of so many bytes. */
    private static ByteBuffer json(int bytes, String[] values) {
      String document = "{\"id\":\"" + values[0] + "\",\"kind\":\"" + values[1].substring("queue:".length())
          + "\",\"customer\":{\"name\":\"ACME Europe\",\"region\":\"" + values[3] + "\",\"tier\":3},\"placed\":"
          + "\"2026-11-27T20:00:00Z\",\"lines\":[{\"sku\":\"A-100\",\"amount\":" + values[4]
          + ",\"count\":2},{\"sku\":\"B-200\",\"amount\":7,\"count\":1}],\"price\":" + values[5] + ",\"code\":\""
          + values[6] + "\",\"paid\":true,\"note\":\"";
      return ByteBuffer.wrap(bytes(document + "x".repeat(bytes - document.length() - 2) + "\"}"));
    }

    /** A document of XML with the same values. */
    private static ByteBuffer xml(int bytes, String[] values) {
      String document = "<m><id>" + values[0] + "</id><kind>" + values[1].substring("queue:".length())
          + "</kind><customer><name>ACME Europe</name><region>" + values[3] + "</region></customer><line><amount>"
          + values[4] + "</amount></line><price>" + values[5] + "</price><code>" + values[6] + "</code><note>";
      return ByteBuffer.wrap(bytes(document + "x".repeat(bytes - document.length() - 11) + "</note></m>"));
    }

    private static byte[] bytes(String text) {
      return text.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public boolean next() {
      if (next == records) {
        return false;
      }
      Header[] headers = new Header[names.length];
      byte[][] values = texts[next % DIFFERENT];
      for (int at = 0; at < headers.length; at++) {
        headers[at] = new RecordHeader(ByteBuffer.wrap(names[at]), ByteBuffer.wrap(values[at]));
      }
      row.set(new ConsumerRecord<>(partition.topic(), partition.partition(), next, 1, TimestampType.LOG_APPEND_TIME, 0,
          bodies[next % DIFFERENT].limit(), null, bodies[next % DIFFERENT], new RecordHeaders(headers), Optional.empty()));
      next++;
      return true;
    }

    @Override
    public InternalRow get() {
      return row;
    }

    @Override
    public void close() {
      // Nothing is open.
    }
  }
}
