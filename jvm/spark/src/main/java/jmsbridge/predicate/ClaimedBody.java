package jmsbridge.predicate;

import java.io.IOException;
import jmsbridge.ClaimFolder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Column function that keeps a body in a {@link ClaimFolder}, to the claim on it; the same if it is called again. */
public final class ClaimedBody extends NamedFunction<UTF8String> {
  private static final long serialVersionUID = 1L;

  private final String place;

  /** Function for the folder at a place. */
  public ClaimedBody(String place) {
    super("claim:" + place, DataTypes.StringType, DataTypes.BinaryType);
    this.place = place;
  }

  /** The claim, once the file is complete. */
  public UTF8String invoke(byte[] body) {
    try {
      return UTF8String.fromString(ClaimFolder.at(place).keep(body));
    } catch (IOException error) {
      throw new ClaimFolderException("claim-check.folder " + place + " takes no files: " + error, error);
    }
  }
}
