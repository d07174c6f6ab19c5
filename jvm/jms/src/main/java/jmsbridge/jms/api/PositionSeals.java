package jmsbridge.jms.api;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Seals of position messages, as `position_seals.py` writes and checks them.
 *
 * <p>Without keys, because the bridge's secret is not known here, nothing is sealed and each position is believed.
 */
final class PositionSeals {
  private static final String MARK = " #";
  private static final String ALGORITHM = "HmacSHA256";
  private static final int DIGEST_BYTES = 16;

  private final List<byte[]> keys = new ArrayList<>();

  /** Seals by keys in hexadecimal digits with spaces between them, of which the first seals; null or empty for none. */
  PositionSeals(String given) {
    if (given != null && !given.isEmpty()) {
      for (String key : given.split(" ")) {
        keys.add(HexFormat.of().parseHex(key));
      }
    }
  }

  /** The text of a position without its seal, if it has one. */
  static String text(String sealed) {
    int mark = sealed.indexOf(MARK);
    return mark < 0 ? sealed : sealed.substring(0, mark);
  }

  /** The text of a position with its seal. */
  String sealed(String name, String text) {
    return keys.isEmpty() ? text : text + MARK + digest(keys.get(0), name, text);
  }

  /** Whether a text has the seal of the bridge for a message of that name, or there is no key. */
  boolean hold(String name, String sealed) {
    String text = text(sealed);
    byte[] seal = sealed.substring(Math.min(sealed.length(), text.length() + MARK.length())).getBytes(StandardCharsets.UTF_8);
    return keys.isEmpty()
        || keys.stream()
            .anyMatch(key -> MessageDigest.isEqual(seal, digest(key, name, text).getBytes(StandardCharsets.UTF_8)));
  }

  private static String digest(byte[] key, String name, String text) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(key, ALGORITHM));
      byte[] whole = mac.doFinal((name + "\n" + text).getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(Arrays.copyOf(whole, DIGEST_BYTES));
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("this Java has no " + ALGORITHM, error);
    }
  }
}
