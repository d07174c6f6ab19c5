package jmsbridge.predicate;

/** A body cannot be kept now; a later attempt may succeed. */
public final class ClaimFolderException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ClaimFolderException(String message, Exception cause) {
    super(message, cause);
  }
}
