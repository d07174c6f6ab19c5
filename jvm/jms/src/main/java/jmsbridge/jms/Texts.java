package jmsbridge.jms;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The parts of frames that both sides write: a block of texts, and a block of entries of a structured body.
 *
 * <p>Texts: their number, the length of each in bytes (all as u32), then the bytes in UTF-8. Entries: their number, then
 * for each its name (length and bytes), one letter for its type, and its value (length and bytes).
 */
public final class Texts {
  private Texts() {}

  /** An entry of a map, stream or single-valued object body. */
  public record Entry(String name, char type, byte[] value) {
    /** The value as text. */
    public String text() {
      return new String(value, StandardCharsets.UTF_8);
    }
  }

  /** Bytes of a text. */
  public static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Appends a block of texts. */
  public static void write(Buffer out, List<String> texts) {
    out.u32(texts.size());
    byte[][] encoded = new byte[texts.size()][];
    for (int n = 0; n < encoded.length; n++) {
      encoded[n] = bytes(texts.get(n));
      out.u32(encoded[n].length);
    }
    for (byte[] each : encoded) {
      out.bytes(each);
    }
  }

  /** Reads a block of texts. */
  public static List<String> read(ByteBuffer in) {
    int[] lengths = new int[in.getInt()];
    for (int n = 0; n < lengths.length; n++) {
      lengths[n] = in.getInt();
    }
    List<String> texts = new ArrayList<>(lengths.length);
    for (int length : lengths) {
      texts.add(new String(chunk(in, length), StandardCharsets.UTF_8));
    }
    return texts;
  }

  /** Appends a block of entries. */
  public static void writeEntries(Buffer out, List<Entry> entries) {
    out.u32(entries.size());
    for (Entry each : entries) {
      out.sized(bytes(each.name()));
      out.u8(each.type());
      out.sized(each.value());
    }
  }

  /** Reads a block of entries. */
  public static List<Entry> readEntries(ByteBuffer in) {
    List<Entry> entries = new ArrayList<>();
    for (int left = in.getInt(); left > 0; left--) {
      String name = new String(sized(in), StandardCharsets.UTF_8);
      entries.add(new Entry(name, (char) in.get(), sized(in)));
    }
    return entries;
  }

  /** Reads bytes with their length before them. */
  public static byte[] sized(ByteBuffer in) {
    return chunk(in, in.getInt());
  }

  private static byte[] chunk(ByteBuffer in, int length) {
    byte[] found = new byte[length];
    in.get(found);
    return found;
  }
}
