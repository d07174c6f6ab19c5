package jmsbridge.serdes;

import java.io.IOException;

/** The issuer of tokens answers, and gives no token. */
final class TokenRefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  TokenRefusedException(String message) {
    super(message);
  }
}
