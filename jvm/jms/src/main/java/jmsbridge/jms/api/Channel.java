package jmsbridge.jms.api;

import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import javax.naming.NamingException;
import jmsbridge.jms.Batch;
import jmsbridge.jms.Pipe;
import jmsbridge.jms.RefusedException;
import jmsbridge.jms.Settings;

/**
 * The receive loop of one destination: a session and a thread of its own.
 *
 * <p>A session acknowledges all that it has received, or nothing. So a transaction grows until the worker has all of it; it
 * is then committed. After so many messages, so many bytes, or some time in which the worker does not catch up, the loop
 * stops receiving until the worker has caught up.
 */
final class Channel implements Runnable {
  private static final int FRAME_BYTES = 1 << 16;
  private static final int FRAME_MESSAGES = 250;
  private static final long BRIEFLY = 1;
  private static final long SOON = 5;
  private static final long IDLE = 250;
  private static final long AGAIN = 2000;
  private static final long CATCH_UP = 500;
  private static final long PATIENCE = 10_000;

  private final Provider provider;
  private final Session session;
  private final String address;
  private final Destination destination;
  private final MessageConsumer consumer;
  private final Codec codec;
  private final Pipe pipe;
  private final int number;
  private final long mostMessages;
  private final long mostBytes;
  private final boolean transacted;
  private final Thread thread;

  private final Batch batch = new Batch();
  private final List<String> ids = new ArrayList<>();
  private long bytes;
  private long received;
  private long committed;
  private long behindSince;
  private Message last;
  private volatile long busySince;

  private long done;
  private boolean ending;

  Channel(Provider provider, Session session, String address, int number, Pipe pipe)
      throws JMSException, NamingException, RefusedException {
    Settings settings = provider.settings;
    this.provider = provider;
    this.session = session;
    this.number = number;
    this.pipe = pipe;
    transacted = session.getTransacted();
    mostMessages = settings.number("batch");
    mostBytes = settings.number("batch-bytes");
    codec = new Codec(settings.number("most-bytes"), (int) settings.number("kept-bytes"), address);
    this.address = address;
    destination = found(provider, address);
    consumer = consumer(destination, address, settings);
    thread = new Thread(this, "receive " + address);
  }

  private MessageConsumer consumer(Destination destination, String address, Settings settings)
      throws JMSException, RefusedException {
    String selector = settings.get("selector");
    String subscription = settings.get("subscription");
    Topic topic = subscription != null && destination instanceof Topic found && !address.startsWith("queue:") ? found : null;
    String name = subscription + "." + address.substring(address.indexOf(':') + 1);
    if (topic == null || !settings.is("shared")) {
      try {
        return topic == null
            ? session.createConsumer(destination, selector)
            : session.createDurableSubscriber(topic, name, selector, false);
      } catch (UnsupportedOperationException error) {
        // RabbitMQ's says no more.
        if (selector == null) {
          throw error;
        }
        throw new RefusedException("the client has no selectors: select by routes in its place");
      }
    }
    try {
      return session.createSharedDurableConsumer(topic, name, selector);
    } catch (AbstractMethodError | NoSuchMethodError | UnsupportedOperationException error) {
      throw new RefusedException("the client has no shared subscriptions, which are of JMS 2.0");
    }
  }

  private Destination found(Provider provider, String address) throws JMSException, NamingException {
    try {
      return provider.destination(session, address);
    } catch (RefusedException missing) {
      // It may be added to JNDI later.
      throw new JMSException(missing.getMessage());
    }
  }

  void start() {
    thread.start();
  }

  void join() throws InterruptedException {
    thread.join();
  }

  synchronized void done(long count) {
    done = count;
    notifyAll();
  }

  synchronized void end() {
    ending = true;
    notifyAll();
  }

  @Override
  public void run() {
    try {
      receive();
      settle();
      consumer.close();
      session.close();
    } catch (OutOfMemoryError error) {
      throw error;
    } catch (UnreadableException error) {
      provider.unreadable(address, error.getCause());
    } catch (Exception | LinkageError error) {
      provider.failed(error);
    }
  }

  /** True if the thread has not come back from a call to the provider since a time. */
  boolean isBusySince(long time) {
    return busySince > 0 && busySince < time;
  }

  private void receive() throws JMSException, InterruptedException, UnreadableException {
    try {
      while (step()) {
        busySince = System.currentTimeMillis();
      }
    } catch (IOException gone) {
      // The worker has gone: what it had is still acknowledged.
    }
    busySince = 0;
  }

  private boolean step() throws JMSException, IOException, InterruptedException, UnreadableException {
    long now = System.currentTimeMillis();
    synchronized (this) {
      if (ending) {
        return false;
      }
      if (done == received && received > committed) {
        commit();
      } else if (done > committed && behindSince == 0) {
        behindSince = now;
      }
    }
    boolean isBehind = behindSince > 0 && now - behindSince > CATCH_UP;
    if (received - committed >= mostMessages || bytes >= mostBytes || isBehind) {
      flush();
      busySince = 0;
      synchronized (this) {
        if (!ending && done < received) {
          wait(IDLE);
        }
      }
      return true;
    }
    Message message;
    try {
      message = consumer.receive(batch.count() > 0 ? BRIEFLY : received > committed ? SOON : IDLE);
    } catch (JMSException | RuntimeException | LinkageError error) {
      setAside(error);
      return true;
    }
    if (message == null) {
      flush();
    } else {
      take(message);
    }
    return true;
  }

  private void take(Message message) throws JMSException, IOException {
    int before = batch.size();
    codec.write(batch, message);
    count(message, before);
    if (batch.size() >= FRAME_BYTES || batch.count() >= FRAME_MESSAGES) {
      flush();
    }
  }

  private void count(Message message, int before) {
    ids.add(id(message));
    last = message;
    received++;
    bytes += batch.size() - before;
  }

  private static String id(Message message) {
    try {
      return message.getJMSMessageID();
    } catch (JMSException | RuntimeException unreadable) {
      return null;
    }
  }

  /**
   * Takes a message at which the client has thrown as it is, where the provider has a way to it.
   *
   * <p>The client may count the message as received, so that the next commit would acknowledge it unseen. Therefore all is
   * given back, and what the worker has is received once more and acknowledged.
   */
  private void setAside(Throwable error) throws JMSException, IOException, InterruptedException, UnreadableException {
    if (provider.hasFailed()) {
      throw lost(error);
    }
    flush();
    busySince = 0;
    if (!isDone()) {
      throw lost(error);
    }
    try {
      giveBack();
      acknowledgeAgain(ids);
    } catch (JMSException | RuntimeException broken) {
      // Without a connection the client throws as well.
      throw lost(error);
    }
    settled();
    byte[] body;
    Message message;
    try (Foreign foreign = Foreign.of(session, destination)) {
      message = foreign == null ? null : foreign.receive(AGAIN);
      body = message == null ? null : foreign.body(message);
    }
    if (body == null) {
      giveBack();
      throw new UnreadableException(error);
    }
    int before = batch.size();
    codec.writeForeign(batch, message, body, error);
    count(message, before);
    flush();
    if (isDone()) {
      // By itself, since the next message may be another one that the client cannot read.
      commit();
    }
  }

  private static JMSException lost(Throwable error) {
    if (error instanceof JMSException found) {
      return found;
    }
    JMSException told = new JMSException(String.valueOf(error));
    told.initCause(error);
    return told;
  }

  /** Waits until the worker has all messages; false if it does not have them in time. */
  private synchronized boolean isDone() throws InterruptedException {
    long until = System.currentTimeMillis() + PATIENCE;
    while (!ending && done < received && System.currentTimeMillis() < until) {
      wait(IDLE);
    }
    return done >= received;
  }

  /** A message that the client cannot read, and that the provider has no other way to. */
  private static final class UnreadableException extends Exception {
    private static final long serialVersionUID = 1L;

    UnreadableException(Throwable cause) {
      super(cause);
    }
  }

  private void flush() throws IOException {
    if (batch.count() > 0) {
      // While the worker does not read, nothing is wrong with the provider.
      busySince = 0;
      pipe.write(Pipe.MESSAGES, batch.take(number));
    }
  }

  private void commit() throws JMSException {
    if (transacted) {
      session.commit();
    } else {
      last.acknowledge();
    }
    settled();
  }

  private void settled() {
    committed = received;
    behindSince = 0;
    bytes = 0;
    ids.clear();
  }

  /** Gives back what the worker does not have, and acknowledges what it has. */
  private void settle() throws JMSException {
    long count;
    synchronized (this) {
      count = done - committed;
    }
    if (received == committed) {
      return;
    }
    if (count == received - committed) {
      commit();
      return;
    }
    List<String> wanted = new ArrayList<>(ids.subList(0, (int) count));
    giveBack();
    acknowledgeAgain(wanted);
  }

  /**
   * Receives messages that were given back once more, and acknowledges them: a session cannot acknowledge a part.
   *
   * <p>If another message comes, or one that the client cannot read, they stay with the provider: what comes again then, the
   * worker recognises.
   */
  private void acknowledgeAgain(List<String> ids) throws JMSException {
    List<String> wanted = new ArrayList<>(ids);
    if (wanted.isEmpty() || wanted.contains(null)) {
      return;
    }
    while (!wanted.isEmpty()) {
      Message again = null;
      try {
        again = consumer.receive(AGAIN);
      } catch (JMSException | RuntimeException | LinkageError unreadable) {
        // As if another message had come.
      }
      if (again == null || !wanted.remove(id(again))) {
        giveBack();
        return;
      }
      last = again;
    }
    commit();
  }

  private void giveBack() throws JMSException {
    if (transacted) {
      session.rollback();
    } else {
      session.recover();
    }
  }
}
