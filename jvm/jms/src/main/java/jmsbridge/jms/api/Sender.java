package jmsbridge.jms.api;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.Session;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.naming.NamingException;
import jmsbridge.jms.Main;
import jmsbridge.jms.Pipe;
import jmsbridge.jms.RefusedException;
import jmsbridge.jms.Texts;
import jmsbridge.jms.Texts.Entry;

/**
 * Sends the messages of a frame in one transaction.
 *
 * <p>If the provider does not take them together, each is sent alone, so that one bad message, or one that the provider has
 * already, does not keep the others back. A persistent message needs no transaction for that: its sending is confirmed. With
 * positions, each transaction moves them as well, and what the broker has already is not sent again.
 */
final class Sender {
  private static final int MOST_DESTINATIONS = 1000;
  private static final int REPORTED = 40;
  private static final String OWN = "jmsbridge.";
  private static final String OTHER = "jmsbridge_";

  private final Provider provider;
  private final Way batches;
  private final Way single;
  private final Pipe pipe;
  private final String duplicateId;
  private final Positions positions;
  private final Map<String, Destination> destinations = new LinkedHashMap<>();
  private volatile long busySince;

  /** A message as the worker gives it. */
  private record Given(
      long number,
      char letter,
      String address,
      String replyTo,
      String id,
      Positions.Place place, // null for a message that is from no topic
      List<String> texts,
      byte[] body) {}

  /** A session with its producer. */
  private static final class Way {
    final Session session;
    final MessageProducer producer;
    private long delayed;

    Way(Session session) throws JMSException {
      this.session = session;
      producer = session.createProducer(null);
    }

    void delay(long milliseconds) throws JMSException, RefusedException {
      if (milliseconds != delayed) {
        try {
          producer.setDeliveryDelay(milliseconds);
          delayed = milliseconds;
        } catch (AbstractMethodError | NoSuchMethodError | UnsupportedOperationException error) {
          throw new RefusedException("the client has no delivery delay, which is of JMS 2.0");
        }
      }
    }
  }

  /** `transacted` is null without transactions. */
  Sender(Provider provider, Session transacted, Session plain, Pipe pipe)
      throws JMSException, NamingException, RefusedException {
    this.provider = provider;
    batches = transacted == null ? null : new Way(transacted);
    single = new Way(plain);
    this.pipe = pipe;
    duplicateId = provider.settings.get("duplicate-id");
    String queue = provider.settings.get("position-queue");
    if (queue != null && transacted == null) {
      throw new RefusedException("the provider has no transactions, so it cannot keep positions: remove position-queue");
    }
    positions =
        queue == null
            ? null
            : new Positions(
                transacted,
                provider.destination(transacted, "queue:" + queue),
                provider.settings.get("position-owner"),
                new PositionSeals(provider.settings.get("position-keys")));
  }

  void send(ByteBuffer content) throws JMSException, IOException, NamingException {
    List<Given> given = new ArrayList<>();
    for (int left = content.getInt(); left > 0; left--) {
      long number = content.getLong();
      char letter = (char) content.get();
      List<String> texts = Texts.read(content);
      Positions.Place place = texts.get(3).isEmpty() ? null : Positions.Place.of(texts.get(3));
      List<String> rest = texts.subList(4, texts.size());
      given.add(new Given(number, letter, texts.get(0), texts.get(1), texts.get(2), place, rest, Texts.sized(content)));
    }
    List<String> outcomes = new ArrayList<>();
    busySince = System.currentTimeMillis();
    if (batches == null || !together(given, outcomes)) {
      outcomes.clear();
      for (Given each : given) {
        busySince = System.currentTimeMillis();
        String refusal = each.place() == null ? alone(each) : aloneWithPosition(each);
        outcomes.addAll(List.of(String.valueOf(each.number()), refusal));
        if (outcomes.size() >= REPORTED) {
          pipe.write(Pipe.OUTCOMES, outcomes);
          outcomes.clear();
        }
      }
    }
    busySince = 0;
    pipe.write(Pipe.OUTCOMES, outcomes);
  }

  /** True if a transaction has taken since a time. */
  boolean isBusySince(long time) {
    return busySince > 0 && busySince < time;
  }

  /** Sends all in one transaction; false if nothing was sent. */
  private boolean together(List<Given> given, List<String> outcomes) throws JMSException, NamingException {
    try {
      for (Given each : given) {
        if (each.place() != null) {
          busySince = System.currentTimeMillis();
          positions.know(each.place());
        }
      }
      for (Given each : given) {
        outcomes.addAll(List.of(String.valueOf(each.number()), sendOnce(each)));
      }
      commit();
      return true;
    } catch (JMSException error) {
      giveUp(error);
      return false;
    }
  }

  /** Sends one message in the open transaction, unless the broker has it; returns why it is refused, or an empty text. */
  private String sendOnce(Given each) throws JMSException, NamingException {
    if (each.place() != null && positions.has(each.place())) {
      return "";
    }
    String refusal = "";
    try {
      send(each, batches);
    } catch (RefusedException error) {
      refusal = error.getMessage();
    }
    if (each.place() != null) {
      positions.done(each.place(), !refusal.isEmpty());
    }
    return refusal;
  }

  private void commit() throws JMSException {
    if (positions != null) {
      positions.move();
    }
    batches.session.commit();
  }

  /** Sends one message in a transaction with its position; returns the reason why it is refused, or an empty text. */
  private String aloneWithPosition(Given each) throws JMSException, NamingException {
    positions.know(each.place());
    String refusal;
    try {
      refusal = sendOnce(each);
      commit();
      return refusal;
    } catch (JMSException error) {
      if (error instanceof ResourceAllocationException || error instanceof IllegalStateException) {
        throw error;
      }
      giveUp(error);
      refusal = isDuplicate(error) ? "" : provider.why(error);
    }
    positions.know(each.place());
    if (refusal.isEmpty() || positions.has(each.place())) {
      return "";
    }
    positions.done(each.place(), true);
    commit();
    return refusal;
  }

  /** Sends one message; returns the reason why it is refused, or an empty text. */
  private String alone(Given each) throws JMSException, NamingException {
    try {
      if (batches != null && each.texts().contains("HNON_PERSISTENT")) {
        send(each, batches);
        batches.session.commit();
      } else {
        send(each, single);
      }
    } catch (RefusedException error) {
      return error.getMessage();
    } catch (JMSException error) {
      if (isDuplicate(error)) {
        giveUp(error);
        return "";
      }
      if (error instanceof ResourceAllocationException || error instanceof IllegalStateException) {
        throw error;
      }
      giveUp(error);
      return provider.why(error);
    }
    return "";
  }

  /** Ends the transaction; if that fails as well, the connection is lost. */
  private void giveUp(JMSException error) throws JMSException {
    if (positions != null) {
      positions.forget();
    }
    if (provider.hasFailed()) {
      throw error;
    }
    try {
      if (batches != null) {
        batches.session.rollback();
      }
    } catch (JMSException lost) {
      throw error;
    }
  }

  private static boolean isDuplicate(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each.getClass().getSimpleName().contains("DuplicateId") || Main.text(each).contains("DUPLICATE_ID")) {
        return true;
      }
    }
    return false;
  }

  private void send(Given each, Way way) throws JMSException, NamingException, RefusedException {
    Message message;
    Map<String, String> fields = new LinkedHashMap<>();
    Destination to;
    try {
      message = Codec.message(way.session, each.letter(), each.body());
      to = destination(each.address());
      if (!each.replyTo().isEmpty()) {
        message.setJMSReplyTo(destination(each.replyTo()));
      }
      for (int n = 0; n + 1 < each.texts().size(); n += 2) {
        set(message, each.texts().get(n), each.texts().get(n + 1), fields);
      }
      if (duplicateId != null) {
        message.setStringProperty(duplicateId, each.id());
      }
    } catch (IllegalStateException lost) {
      throw lost;
    } catch (JMSException | RuntimeException error) {
      throw new RefusedException(provider.why(error));
    }
    boolean isPersistent = !"NON_PERSISTENT".equals(fields.get("JMSDeliveryMode"));
    int priority = (int) number(fields, "JMSPriority", Message.DEFAULT_PRIORITY);
    long expires = number(fields, "JMSExpiration", 0);
    long now = System.currentTimeMillis();
    way.delay(Math.max(number(fields, "JMSDeliveryTime", 0) - now, 0));
    way.producer.send(
        to,
        message,
        isPersistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT,
        Math.min(Math.max(priority, 0), 9),
        expires > 0 ? Math.max(expires - now, 1) : 0);
  }

  private Destination destination(String address) throws JMSException, NamingException, RefusedException {
    Destination known = destinations.get(address);
    if (known == null) {
      if (destinations.size() >= MOST_DESTINATIONS) {
        destinations.clear();
      }
      known = provider.destination(single.session, address);
      destinations.put(address, known);
    }
    return known;
  }

  private static void set(Message message, String name, String typed, Map<String, String> fields)
      throws JMSException {
    String text = typed.substring(1);
    if (typed.charAt(0) == 'H') {
      switch (name) {
        case "JMSCorrelationID" -> Codec.setCorrelationId(message, text);
        case "JMSType" -> message.setJMSType(text);
        case "JMSXGroupID" -> message.setStringProperty(name, text);
        case "JMSXGroupSeq" -> message.setIntProperty(name, Integer.parseInt(text));
        default -> fields.put(name, text);
      }
      return;
    }
    Object value = Codec.value(new Entry(name, typed.charAt(0), Texts.bytes(text)));
    try {
      message.setObjectProperty(name, value);
    } catch (JMSException | RuntimeException error) {
      if (name.startsWith(OWN)) {
        message.setObjectProperty(OTHER + name.substring(OWN.length()), value);
      } else if (!name.startsWith("JMS_")) {
        throw error;
      }
      // A property of another provider says nothing to this one.
    }
  }

  private static long number(Map<String, String> fields, String name, long otherwise) {
    String text = fields.get(name);
    try {
      return text == null ? otherwise : Long.parseLong(text);
    } catch (NumberFormatException error) {
      return otherwise;
    }
  }
}
