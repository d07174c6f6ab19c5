package jmsbridge.streams;

import java.io.Serializable;
import java.util.Map;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.runtime.AbstractFunction1;
import scala.util.Right;

/** Sink of a topology's run, whose id is the option {@code run}: processes the records that the source reads. */
public final class TopologySink implements TableProvider {
  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return new StructType();
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    String run = options.get("run");
    return new ForeachWriterTable<>(new Writer(run, TopologyRun.settings(run)), new Right<>(new AsItIs()));
  }

  private static final class AsItIs extends AbstractFunction1<InternalRow, InternalRow> implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public InternalRow apply(InternalRow row) {
      return row;
    }
  }

  private static final class Writer extends ForeachWriter<InternalRow> {
    private static final long serialVersionUID = 1L;
    private final String run;
    private final RunSettings settings;
    private transient RunningShare share;

    Writer(String run, RunSettings settings) {
      this.run = run;
      this.settings = settings;
    }

    @Override
    public boolean open(long partition, long batch) {
      share = RunningShare.of(run, (int) partition, settings);
      share.begin(batch);
      return true;
    }

    @Override
    public void process(InternalRow row) {
      share.process();
    }

    @Override
    public void close(Throwable failure) {
      if (share != null && failure == null) {
        share.end();
      } else if (share != null) {
        share.fail();
      }
    }
  }
}
