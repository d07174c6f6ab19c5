package jmsbridge.kafka;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.runtime.AbstractFunction1;
import scala.util.Right;

/**
 * Sink that publishes the records which a query has read, and counts its rows; {@link RecordWriter} has the columns.
 *
 * <p>Options: {@code origin}, the text of the header with which published records are marked; {@code message}, the
 * name of the header with a message's id, for notes; {@code kafka.*}, settings of the producer. Its table is that of
 * Spark's {@code foreach}, which real-time mode allows. The seal of records is not an option: Spark shows options in plans.
 */
public final class RecordSink implements TableProvider {
  private static final String KAFKA = "kafka.";
  private static final String ORIGIN = "origin";
  private static final String MESSAGE = "message";

  private static volatile Seal seal;

  /** Sets the seal of the records of queries that start from now on; null for none. */
  public static void sealWith(Seal given) {
    seal = given;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return new StructType();
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new ForeachWriterTable<>(writer(options, options.get(MESSAGE), seal), new Right<>(new AsItIs()));
  }

  /**
   * Publishes a frame with the columns of the sink, which were not read by the writing tasks themselves, with a seal
   * unless it is null.
   */
  public static void write(Dataset<Row> frame, Map<String, String> options, Seal seal) {
    RecordWriter writer = writer(options, null, seal);
    frame.queryExecution().toRdd().toJavaRDD().foreachPartition(rows -> {
      writer.open(0, 0);
      Throwable failure = null;
      try {
        while (rows.hasNext()) {
          writer.process(rows.next());
        }
      } catch (Throwable thrown) {
        failure = thrown;
        throw thrown;
      } finally {
        writer.close(failure);
      }
    });
  }

  private static RecordWriter writer(Map<String, String> options, String messageHeader, Seal seal) {
    Map<String, String> settings = new HashMap<>();
    options.forEach((name, value) -> {
      if (name.startsWith(KAFKA)) {
        settings.put(name.substring(KAFKA.length()), value);
      }
    });
    return new RecordWriter(settings, options.get(ORIGIN), messageHeader, seal);
  }

  private static final class AsItIs extends AbstractFunction1<InternalRow, InternalRow> implements java.io.Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public InternalRow apply(InternalRow row) {
      return row;
    }
  }
}
