package jmsbridge.kafka;

import java.io.Serializable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * Seal of the records that one run of the router publishes: a header that nobody can make without the router's key.
 *
 * <p>It has {@link #RUN_CHARACTERS} characters that name the run, and {@link #DIGEST_CHARACTERS} for a digest over the
 * run, the journal position, and the topic that the record is sent to. So a record that was copied from another topic,
 * or from another bridge, has no valid seal. The key is of one bridge and one journal (`engine.spark.seals`).
 */
public final class Seal implements Serializable {
  /** Name of the header. */
  static final String HEADER = "jmsbridge.seal";

  private static final long serialVersionUID = 1L;
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final int RUN_CHARACTERS = 8;
  /** Six bits each. */
  private static final int DIGEST_CHARACTERS = 11;
  private static final int BITS = 6;
  /** Of a positive long. */
  private static final int MOST_DIGITS = 19;
  private static final byte[] DIGITS =
      bytes("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

  private final SipHash hash;
  private final byte[] run;

  /** The seal of a run, of whose id the first characters count; the key has 16 bytes. */
  public Seal(byte[] key, String run) {
    this(new SipHash(key), Arrays.copyOf(bytes(run), RUN_CHARACTERS));
  }

  private Seal(SipHash hash, byte[] run) {
    this.hash = hash;
    this.run = run;
  }

  /** Maker of the headers of one thread, which reuses its memory. */
  final class Press {
    private final byte[] text = new byte[2 * Long.BYTES];

    /** Prepares for records with a mark. */
    void turn(long mark) {
      LONG.set(text, 0, mark);
    }

    /** The header for the record that was made from the journal record at an offset. */
    Header header(long offset) {
      return new RecordHeader(HEADER, value(offset));
    }

    private byte[] value(long offset) {
      LONG.set(text, Long.BYTES, offset);
      byte[] value = Arrays.copyOf(run, RUN_CHARACTERS + DIGEST_CHARACTERS);
      long left = hash.of(text, text.length);
      for (int index = RUN_CHARACTERS; index < value.length; index++) {
        value[index] = DIGITS[(int) left & (1 << BITS) - 1];
        left >>>= BITS;
      }
      return value;
    }
  }

  /**
   * The value of a single header; {@link Press} makes many.
   *
   * @param position {@code TOPIC:PARTITION:OFFSET} in the journal, perhaps with {@code :COPY} behind it
   * @throws IllegalArgumentException the last number is not written as the router writes it
   */
  public byte[] value(byte[] position, byte[] topic) {
    int start = offsetAt(position);
    if (start < 0) {
      throw new IllegalArgumentException("a position ends with its offset");
    }
    long offset = 0;
    for (int digit = start; digit < position.length; digit++) {
      offset = 10 * offset + position[digit] - '0';
    }
    Press press = new Press();
    press.turn(mark(topic, Arrays.copyOf(position, start)));
    return press.value(offset);
  }

  /** True where a seal is valid, by a key: columns with the seal and the position (binary, may be null) and the topic. */
  public static Column isValid(byte[] key, Column seal, Column position, Column topic) {
    SipHash hash = new SipHash(key);
    UDF3<byte[], byte[], String, Boolean> check = (given, at, name) -> given != null && at != null
        && given.length == RUN_CHARACTERS + DIGEST_CHARACTERS
        && offsetAt(at) > 0
        && Arrays.equals(given, new Seal(hash, Arrays.copyOf(given, RUN_CHARACTERS)).value(at, bytes(name)));
    return functions.udf(check, DataTypes.BooleanType).apply(seal, position, topic);
  }

  /**
   * Digest of what many records have in common: the run, the topic that they are sent to, and the part of the journal
   * position before the offset.
   */
  long mark(byte[] topic, byte[] place) {
    byte[] text = Arrays.copyOf(run, RUN_CHARACTERS + topic.length + 1 + place.length);
    System.arraycopy(topic, 0, text, RUN_CHARACTERS, topic.length);
    // A topic's name has no colon.
    text[RUN_CHARACTERS + topic.length] = ':';
    System.arraycopy(place, 0, text, RUN_CHARACTERS + topic.length + 1, place.length);
    return hash.of(text, text.length);
  }

  /** Index of a position's last number; -1 if its digits are not those that the router writes. */
  private static int offsetAt(byte[] position) {
    int start = position.length;
    while (start > 0 && position[start - 1] >= '0' && position[start - 1] <= '9') {
      start--;
    }
    int digits = position.length - start;
    boolean isNumber = digits == 1 || digits > 1 && digits <= MOST_DIGITS && position[start] != '0';
    return isNumber && start > 0 && position[start - 1] == ':' ? start : -1;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
