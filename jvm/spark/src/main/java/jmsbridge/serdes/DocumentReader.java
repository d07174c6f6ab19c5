package jmsbridge.serdes;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Reader of the values of one schema as JSON. */
interface DocumentReader {
  /** The content as JSON; the rest of the bytes is the value. */
  byte[] json(ByteBuffer bytes) throws IOException;
}
