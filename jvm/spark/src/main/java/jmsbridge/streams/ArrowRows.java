package jmsbridge.streams;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows that are collected as a batch of Arrow's columns, in its format for streams. */
final class ArrowRows implements AutoCloseable {
  private final BufferAllocator allocator;
  private final VectorSchemaRoot root;
  private final ArrowWriter writer;

  ArrowRows(StructType type) {
    allocator = allocator();
    root = VectorSchemaRoot.create(schema(type), allocator);
    writer = ArrowWriter.create(root);
  }

  private static BufferAllocator allocator() {
    return ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("topology", 0, Long.MAX_VALUE);
  }

  static Schema schema(StructType type) {
    return ArrowUtils$.MODULE$.toArrowSchema(type, "UTC", true, false, false);
  }

  void add(InternalRow row) {
    writer.write(row);
  }

  /** The rows since the last call. */
  byte[] take() {
    writer.finish();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ArrowStreamWriter out = new ArrowStreamWriter(root, null, bytes)) {
      out.writeBatch();
      out.end();
      return bytes.toByteArray();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    } finally {
      writer.reset();
    }
  }

  /** Forgets the rows since the last call of {@link #take}. */
  void clear() {
    writer.reset();
  }

  @Override
  public void close() {
    root.close();
    allocator.close();
  }

  /** The rows of a stream whose columns have these types. */
  static List<UnsafeRow> read(byte[] stream, StructType type) {
    UnsafeProjection copier = UnsafeProjection$.MODULE$.create(type);
    List<UnsafeRow> rows = new ArrayList<>();
    try (BufferAllocator allocator = allocator();
        ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
      while (reader.loadNextBatch()) {
        VectorSchemaRoot read = reader.getVectorSchemaRoot();
        ColumnVector[] columns =
            read.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
        ColumnarBatch batch = new ColumnarBatch(columns, read.getRowCount());
        batch.rowIterator().forEachRemaining(each -> rows.add(copier.apply(each).copy()));
      }
      return rows;
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
