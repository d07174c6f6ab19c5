package jmsbridge.jms.api;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.naming.NamingException;
import jmsbridge.jms.Factories;
import jmsbridge.jms.Link;
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
  private final Provider provider;
  private final List<Channel> channels = new ArrayList<>();
  private final Settings settings;
  private Connection connection;
  private Sender sender;

  /** For a connection factory; `names` is null without JNDI. */
  public Client(Object factory, Settings settings, Pipe pipe, Factories.Names names) {
    this.factory = (ConnectionFactory) factory;
    this.settings = settings;
    this.pipe = pipe;
    provider = new Provider(settings, pipe, names);
  }

  @Override
  public void open() throws Exception {
    String user = settings.get("username");
    connection = user == null ? factory.createConnection() : factory.createConnection(user, settings.get("password"));
    // Before anything else is done with the connection (Jakarta Messaging 3.1, 6.1.2): OpenMQ and RabbitMQ insist on it.
    if (settings.get("client-id") != null) {
      connection.setClientID(settings.get("client-id"));
    }
    connection.setExceptionListener(provider::failed);
    switch (settings.get("role")) {
      case "source" -> receive();
      case "sink" -> sender = new Sender(provider, transacted(), session(Session.AUTO_ACKNOWLEDGE), pipe);
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
      channels.add(new Channel(provider, session(mode), each.getValue(), Integer.parseInt(each.getKey()), pipe));
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

  @Override
  public boolean isStuck() {
    long oldest = System.currentTimeMillis() - STUCK_MILLISECONDS;
    return (sender != null && sender.isBusySince(oldest)) || channels.stream().anyMatch(each -> each.isBusySince(oldest));
  }

  @Override
  public boolean isLogin(Throwable error) {
    return provider.isLogin(error);
  }

  @Override
  public String why(Throwable error) {
    return provider.why(error);
  }

  private static String told(String text) {
    return text == null ? "" : text;
  }
}
