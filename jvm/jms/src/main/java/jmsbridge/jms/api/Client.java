package jmsbridge.jms.api;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Session;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.naming.InvalidNameException;
import javax.naming.NameNotFoundException;
import javax.naming.NamingException;
import jmsbridge.jms.Factories;
import jmsbridge.jms.Link;
import jmsbridge.jms.Main;
import jmsbridge.jms.Pipe;
import jmsbridge.jms.RefusedException;
import jmsbridge.jms.Settings;

/**
 * A connection by one API. The build compiles this package twice: as jmsbridge.jms.jakarta, and with the package names
 * replaced as jmsbridge.jms.javax.
 */
public final class Client implements Link {
  private static final long STUCK_MILLISECONDS = 60_000;

  private final ConnectionFactory factory;
  private final Pipe pipe;
  private final Factories.Names names;
  private final List<Channel> channels = new ArrayList<>();
  private final AtomicBoolean failed = new AtomicBoolean();
  final Settings settings;
  private Connection connection;
  private Sender sender;

  /** For a connection factory; `names` is null without JNDI. */
  public Client(Object factory, Settings settings, Pipe pipe, Factories.Names names) {
    this.factory = (ConnectionFactory) factory;
    this.settings = settings;
    this.pipe = pipe;
    this.names = names;
  }

  @Override
  public void open() throws Exception {
    String user = settings.get("username");
    connection = user == null ? factory.createConnection() : factory.createConnection(user, settings.get("password"));
    // Before anything else is done with the connection (Jakarta Messaging 3.1, 6.1.2): OpenMQ and RabbitMQ insist on it.
    if (settings.get("client-id") != null) {
      connection.setClientID(settings.get("client-id"));
    }
    connection.setExceptionListener(this::failed);
    switch (settings.get("role")) {
      case "source" -> receive();
      case "sink" -> sender = new Sender(this, transacted(), session(Session.AUTO_ACKNOWLEDGE), pipe);
      default -> session(Session.AUTO_ACKNOWLEDGE).close();
    }
    connection.start();
    ConnectionMetaData about = connection.getMetaData();
    pipe.write(Pipe.READY, List.of(told(about.getJMSProviderName()), told(about.getProviderVersion()), told(about.getJMSVersion())));
    for (Channel each : channels) {
      each.start();
    }
  }

  private void receive() throws JMSException, NamingException, RefusedException {
    for (Map.Entry<String, String> each : settings.all("destination.").entrySet()) {
      int mode = settings.is("client-acknowledge") ? Session.CLIENT_ACKNOWLEDGE : Session.SESSION_TRANSACTED;
      channels.add(new Channel(this, session(mode), each.getValue(), Integer.parseInt(each.getKey()), pipe));
    }
  }

  /** A session with transactions; null at a provider without them, such as Amazon SQS. */
  private Session transacted() throws JMSException {
    try {
      return session(Session.SESSION_TRANSACTED);
    } catch (JMSException refused) {
      // If the connection is the reason, this fails as well.
      session(Session.AUTO_ACKNOWLEDGE).close();
      System.err.println("without transactions each message is sent alone: " + why(refused));
      return null;
    }
  }

  private Session session(int mode) throws JMSException {
    return connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
  }

  /** The destination of an address, such as `queue:orders`; by JNDI if the settings say so. */
  Destination destination(Session session, String address) throws JMSException, NamingException, RefusedException {
    String name = address.substring(address.indexOf(':') + 1);
    if (names != null && settings.is("jndi-destinations")) {
      try {
        if (names.lookup(name) instanceof Destination found) {
          return found;
        }
      } catch (NameNotFoundException | InvalidNameException missing) {
        // The same as a name of something else. A message may name any destination.
      }
      throw new RefusedException("JNDI has no destination '" + name + "'");
    }
    if (address.startsWith("topic:")) {
      return session.createTopic(name);
    }
    Destination temporary = TemporaryQueues.found(session, name);
    return temporary == null ? session.createQueue(name) : temporary;
  }

  @Override
  public void done(int channel, long count) {
    channels.get(channel).done(count);
  }

  @Override
  public void send(ByteBuffer messages) throws Exception {
    sender.send(messages);
  }

  @Override
  public void close() {
    for (Channel each : channels) {
      each.end();
    }
    try {
      for (Channel each : channels) {
        each.join();
      }
      connection.close();
    } catch (JMSException | InterruptedException error) {
      System.err.println("while closing: " + why(error));
    }
  }

  /** Reports the end of the connection, once. */
  void failed(Throwable error) {
    failed(isLogin(error) ? "login" : "lost", why(error));
  }

  /** Reports a message that this client cannot read, and that stays with the provider; once. */
  void unreadable(String address, Throwable error) {
    failed(
        "unreadable",
        "the client cannot read a message of " + address + ", which stays there with all behind it: " + why(error)
            + "; read a queue of such senders with type=amqp or type=stomp, or take the message out");
  }

  private void failed(String kind, String why) {
    if (failed.compareAndSet(false, true)) {
      try {
        pipe.write(Pipe.FAILED, List.of(kind, why));
      } catch (IOException gone) {
        System.err.println("the worker has gone");
      }
    }
  }

  boolean hasFailed() {
    return failed.get();
  }

  @Override
  public boolean isStuck() {
    long oldest = System.currentTimeMillis() - STUCK_MILLISECONDS;
    return (sender != null && sender.isBusySince(oldest)) || channels.stream().anyMatch(each -> each.isBusySince(oldest));
  }

  @Override
  public boolean isLogin(Throwable error) {
    Throwable each = error;
    for (int depth = 0; each != null && depth < 5; depth++) {
      // ActiveMQ Classic throws a plain JMSException, with what its broker threw as the cause.
      if (each instanceof JMSSecurityException || each instanceof SecurityException) {
        return true;
      }
      Throwable linked = each instanceof JMSException found ? found.getLinkedException() : null;
      each = linked == null ? each.getCause() : linked;
    }
    return false;
  }

  @Override
  public String why(Throwable error) {
    StringBuilder told = new StringBuilder(Main.text(error));
    Throwable each = error;
    for (int depth = 0; each instanceof JMSException && depth < 5; depth++) {
      JMSException found = (JMSException) each;
      if (found.getErrorCode() != null && told.indexOf(found.getErrorCode()) < 0) {
        told.append(" (").append(found.getErrorCode()).append(')');
      }
      each = found.getLinkedException();
      String linked = each == null ? "" : Main.text(each);
      if (told.indexOf(linked) < 0) {
        told.append("; because of ").append(linked);
      }
    }
    return told.toString();
  }

  private static String told(String text) {
    return text == null ? "" : text;
  }
}
