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
    private byte[] text = new byte[Long.BYTES];

    /** Prepares for records that are sent to the topic with a mark. */
    void turn(long mark) {
      LONG.set(text, 0, mark);
    }

    /** The header for a record of the topic that was made from the journal record at a position. */
    Header header(byte[] position) {
      return new RecordHeader(HEADER, value(position));
    }

    private byte[] value(byte[] position) {
      int length = Long.BYTES + position.length;
      if (text.length < length) {
        text = Arrays.copyOf(text, length);
      }
      System.arraycopy(position, 0, text, Long.BYTES, position.length);
      byte[] value = Arrays.copyOf(run, RUN_CHARACTERS + DIGEST_CHARACTERS);
      long left = hash.of(text, length);
      for (int at = RUN_CHARACTERS; at < value.length; at++) {
        value[at] = DIGITS[(int) left & (1 << BITS) - 1];
        left >>>= BITS;
      }
      return value;
    }
  }

  /** The value of a single header; {@link Press} makes many. */
  public byte[] value(byte[] position, byte[] topic) {
    Press press = new Press();
    press.turn(mark(topic));
    return press.value(position);
  }

  /** True where a seal is valid, by a key: columns with the seal and the position (binary, may be null) and the topic. */
  public static Column isValid(byte[] key, Column seal, Column position, Column topic) {
    SipHash hash = new SipHash(key);
    UDF3<byte[], byte[], String, Boolean> check = (given, at, name) -> given != null && at != null
        && given.length == RUN_CHARACTERS + DIGEST_CHARACTERS
        && Arrays.equals(given, new Seal(hash, Arrays.copyOf(given, RUN_CHARACTERS)).value(at, bytes(name)));
    return functions.udf(check, DataTypes.BooleanType).apply(seal, position, topic);
  }

  /** Digest of run and topic, by which those of the topic's records begin: so a topic's name is digested once. */
  long mark(byte[] topic) {
    byte[] text = Arrays.copyOf(run, RUN_CHARACTERS + topic.length);
    System.arraycopy(topic, 0, text, RUN_CHARACTERS, topic.length);
    return hash.of(text, text.length);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
