package jmsbridge.kafka;

import java.io.Serializable;
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
    hash = new SipHash(key);
    this.run = Arrays.copyOf(bytes(run), RUN_CHARACTERS);
  }

  /** Maker of the headers of one thread, which reuses its memory. */
  final class Press {
    private byte[] text = run.clone();

    /** The header for a record of a topic that was made from the journal record at a position. */
    Header header(byte[] position, byte[] topic) {
      return new RecordHeader(HEADER, value(position, topic));
    }

    private byte[] value(byte[] position, byte[] topic) {
      int length = RUN_CHARACTERS + position.length + 1 + topic.length;
      if (text.length < length) {
        text = Arrays.copyOf(text, length);
      }
      byte[] value = new byte[RUN_CHARACTERS + DIGEST_CHARACTERS];
      System.arraycopy(run, 0, value, 0, RUN_CHARACTERS);
      write(digest(hash, text, position, topic), value);
      return value;
    }
  }

  /** The value of a single header; {@link Press} makes many. */
  public byte[] value(byte[] position, byte[] topic) {
    return new Press().value(position, topic);
  }

  /** True where a seal is valid, by a key: columns with the seal and the position (binary, may be null) and the topic. */
  public static Column isValid(byte[] key, Column seal, Column position, Column topic) {
    SipHash hash = new SipHash(key);
    UDF3<byte[], byte[], String, Boolean> check = (given, at, name) -> given != null && at != null
        && given.length == RUN_CHARACTERS + DIGEST_CHARACTERS && isValid(hash, given, at, bytes(name));
    return functions.udf(check, DataTypes.BooleanType).apply(seal, position, topic);
  }

  private static boolean isValid(SipHash hash, byte[] seal, byte[] position, byte[] topic) {
    byte[] text = Arrays.copyOf(seal, RUN_CHARACTERS + position.length + 1 + topic.length);
    byte[] value = seal.clone();
    write(digest(hash, text, position, topic), value);
    return Arrays.equals(seal, value);
  }

  /** Digest of a text that begins with a run's characters; no topic has a zero byte in its name. */
  private static long digest(SipHash hash, byte[] text, byte[] position, byte[] topic) {
    int end = RUN_CHARACTERS + position.length;
    System.arraycopy(position, 0, text, RUN_CHARACTERS, position.length);
    text[end] = 0;
    System.arraycopy(topic, 0, text, end + 1, topic.length);
    return hash.of(text, end + 1 + topic.length);
  }

  private static void write(long digest, byte[] value) {
    long left = digest;
    for (int at = RUN_CHARACTERS; at < value.length; at++) {
      value[at] = DIGITS[(int) left & (1 << BITS) - 1];
      left >>>= BITS;
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
