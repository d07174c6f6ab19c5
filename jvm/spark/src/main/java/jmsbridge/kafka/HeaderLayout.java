package jmsbridge.kafka;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Names of a record's headers in their order.
 *
 * <p>Records with the same names in the same order have the same layout object, so what was once found for a layout
 * holds for the next record. Names are recognised by their bytes: Kafka's own headers decode a name into a new text for
 * each record. Layouts form a tree, in which each layout is the parent of those that have one name more; one thread uses
 * a tree.
 */
final class HeaderLayout {
  /** Limit of the layouts in a tree, since names come from messages. */
  private static final int LAYOUTS = 1024;
  /** The undecoded name in Kafka's header, which has no public access. */
  private static final VarHandle NAME_BYTES = nameBytes();

  private final HeaderLayout parent;
  private final int size;
  /** The last of the names; null in the layout without names. */
  private final byte[] bytes;
  private final String text;
  private final UTF8String name;
  private final List<HeaderLayout> longer = new ArrayList<>();
  /** The member of `longer` that was found last. */
  private HeaderLayout recent;

  private HeaderLayout(HeaderLayout parent, byte[] bytes) {
    this.parent = parent;
    this.bytes = bytes;
    size = parent == null ? 0 : parent.size + 1;
    // As Kafka decodes it, so that bytes which are not UTF-8 become the same text.
    text = bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    name = text == null ? null : UTF8String.fromString(text);
  }

  /** Tree of layouts; begins anew when it has too many. */
  static final class Tree {
    private HeaderLayout root = new HeaderLayout(null, null);
    private int layouts;

    /** The layout of these headers. */
    HeaderLayout of(Header[] headers) {
      if (layouts > LAYOUTS) {
        root = new HeaderLayout(null, null);
        layouts = 0;
      }
      HeaderLayout layout = root;
      for (Header header : headers) {
        HeaderLayout next = layout.find(header);
        if (next == null) {
          next = layout.add(header);
          layouts++;
        }
        layout = next;
      }
      return layout;
    }
  }

  /** The last of the names. */
  UTF8String name() {
    return name;
  }

  /** The last of the names, as Kafka gives it. */
  String text() {
    return text;
  }

  /** All names in their order. */
  HeaderLayout[] names() {
    HeaderLayout[] names = new HeaderLayout[size];
    for (HeaderLayout layout = this; layout.size > 0; layout = layout.parent) {
      names[layout.size - 1] = layout;
    }
    return names;
  }

  /** Place of the first header of this name; -1 if there is none. */
  int find(UTF8String wanted) {
    int index = -1;
    for (HeaderLayout layout = this; layout.size > 0; layout = layout.parent) {
      index = layout.name.equals(wanted) ? layout.size - 1 : index;
    }
    return index;
  }

  private HeaderLayout find(Header header) {
    ByteBuffer buffer = header instanceof RecordHeader given ? (ByteBuffer) NAME_BYTES.get(given) : null;
    byte[] decoded = buffer == null ? header.key().getBytes(StandardCharsets.UTF_8) : null;
    if (recent != null && recent.isLast(buffer, decoded)) {
      return recent;
    }
    for (HeaderLayout layout : longer) {
      if (layout.isLast(buffer, decoded)) {
        recent = layout;
        return layout;
      }
    }
    return null;
  }

  private boolean isLast(ByteBuffer buffer, byte[] decoded) {
    if (buffer == null) {
      return Arrays.equals(bytes, decoded);
    }
    int start = buffer.arrayOffset() + buffer.position();
    return Arrays.equals(buffer.array(), start, start + buffer.remaining(), bytes, 0, bytes.length);
  }

  private HeaderLayout add(Header header) {
    ByteBuffer buffer = header instanceof RecordHeader given ? (ByteBuffer) NAME_BYTES.get(given) : null;
    byte[] copy;
    if (buffer == null) {
      copy = header.key().getBytes(StandardCharsets.UTF_8);
    } else {
      copy = new byte[buffer.remaining()];
      buffer.duplicate().get(copy);
    }
    recent = new HeaderLayout(this, copy);
    longer.add(recent);
    return recent;
  }

  private static VarHandle nameBytes() {
    try {
      return MethodHandles.privateLookupIn(RecordHeader.class, MethodHandles.lookup())
          .findVarHandle(RecordHeader.class, "keyBuffer", ByteBuffer.class);
    } catch (ReflectiveOperationException error) {
      throw new ExceptionInInitializerError(error);
    }
  }
}
