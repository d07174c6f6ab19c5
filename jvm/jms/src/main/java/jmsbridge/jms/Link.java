package jmsbridge.jms;

import java.nio.ByteBuffer;

/** One connection to a provider, of one API; its methods are called by the thread that reads the pipe. */
public interface Link {
  /** Connects, and begins to receive; returns when the provider has confirmed it. */
  void open() throws Exception;

  /** The worker has all messages of a destination up to a number. */
  void done(int channel, long count);

  /** Sends the messages of a frame, and reports on each. */
  void send(ByteBuffer messages) throws Exception;

  /** Ends in order, with acknowledgements of what is done. */
  void close();

  /** One line for users, with what the provider says and its reason codes. */
  String why(Throwable error);

  /** Whether a call to the provider has taken longer than any call should. */
  boolean isStuck();

  /** Whether a login was refused. */
  boolean isLogin(Throwable error);
}
