package jmsbridge.predicate;

import jmsbridge.kafka.HeaderArray;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Texts of the headers of a record. */
final class HeaderText {
  private HeaderText() {}

  /** Text of the first header of that name; null without one. The headers may be null. */
  static UTF8String first(ArrayData headers, UTF8String name) {
    if (headers instanceof HeaderArray record) {
      return record.text(record.find(name).index());
    }
    for (int index = 0; headers != null && index < headers.numElements(); index++) {
      InternalRow header = headers.getStruct(index, 2);
      if (header.getUTF8String(0).equals(name)) {
        return header.isNullAt(1) ? null : of(header);
      }
    }
    return null;
  }

  /** Text of a header that has a value. */
  static UTF8String of(InternalRow header) {
    // The first case copies no bytes.
    return header instanceof UnsafeRow ? header.getUTF8String(1) : UTF8String.fromBytes(header.getBinary(1));
  }
}
