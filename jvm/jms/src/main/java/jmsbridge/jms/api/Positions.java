package jmsbridge.jms.api;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import jmsbridge.jms.RefusedException;

/**
 * Positions of a sink in the partitions of its topic, kept in a queue at the broker.
 *
 * <p>Each partition has one message there. A transaction that sends messages receives it and sends its successor, so that
 * position and messages change together or not at all. While a transaction is open or in doubt, no other connection gets the
 * position. The text of a position is the offset, the time of the newest record, and the offsets below that were refused,
 * with a seal behind it, since others may write to the queue.
 */
final class Positions {
  private static final String PROPERTY = "jmsbridge_position";
  private static final long HELD_MILLISECONDS = 45_000;
  private static final long OTHERS_MILLISECONDS = 500;
  private static final int MOST_REFUSED = 2_000;
  private static final Pattern POSITION = Pattern.compile("-?[0-9]{1,19} -?[0-9]{1,19}( [0-9]{1,19}){0," + MOST_REFUSED + "}");

  private final Session session;
  private final Destination queue;
  private final String owner;
  private final PositionSeals seals;
  private final MessageProducer producer;
  private final Map<Integer, MessageConsumer> consumers = new TreeMap<>();
  private final Map<Integer, Position> known = new TreeMap<>();

  /**
   * Place of a record in the topic, and the time at which it was written: offsets begin anew when a topic is made anew.
   *
   * @param end offset behind the last record of the partition that is known
   */
  record Place(int partition, long offset, long time, long end) {
    /** Reads four numbers. */
    static Place of(String text) {
      String[] numbers = text.split(" ");
      return new Place(
          Integer.parseInt(numbers[0]), Long.parseLong(numbers[1]), Long.parseLong(numbers[2]), Long.parseLong(numbers[3]));
    }
  }

  private static final class Position {
    private final TreeSet<Long> refused = new TreeSet<>();
    private long offset = -1;
    private long time = -1;
    private boolean hasChanged;
    private String text = "";

    /** Takes over what a message says; returns false if it is not a position before the end of the partition. */
    boolean add(String sealed, long end) {
      String found = PositionSeals.text(sealed);
      if (!POSITION.matcher(found).matches()) {
        return false;
      }
      long[] numbers;
      try {
        numbers = Arrays.stream(found.split(" ")).mapToLong(Long::parseLong).toArray();
      } catch (NumberFormatException error) {
        return false;
      }
      if (numbers[0] >= end) {
        return false;
      }
      offset = Math.max(offset, numbers[0]);
      time = Math.max(time, numbers[1]);
      for (int n = 2; n < numbers.length; n++) {
        refused.add(numbers[n]);
      }
      return true;
    }

    void done(Place place, boolean isRefused) {
      offset = Math.max(offset, place.offset());
      time = Math.max(time, place.time());
      hasChanged = true;
      if (!isRefused) {
        refused.remove(place.offset());
      } else if (refused.add(place.offset()) && refused.size() > MOST_REFUSED) {
        refused.pollFirst();
      }
    }

    String write(String name, PositionSeals seals) {
      text = seals.sealed(name, offset + " " + time + refused.stream().map(each -> " " + each).collect(Collectors.joining()));
      hasChanged = false;
      return text;
    }
  }

  /** Positions of `owner` in a queue, by a session with transactions; fails where the provider or the user may not use it. */
  Positions(Session session, Destination queue, String owner, PositionSeals seals) throws JMSException, RefusedException {
    this.session = session;
    this.queue = queue;
    this.owner = owner;
    this.seals = seals;
    producer = session.createProducer(queue);
    try {
      // Of no partition: a consumer of one would receive its position ahead of its use.
      consumer(-1);
    } catch (UnsupportedOperationException error) {
      throw new RefusedException("the client has no selectors, so it cannot keep positions: remove position-queue");
    }
  }

  /**
   * Gets the position of a partition, unless it is known. Commits, so nothing else may be open in the transaction.
   *
   * <p>It is put back as a new message, because a broker counts the deliveries of one.
   */
  void know(Place place) throws JMSException {
    if (known.containsKey(place.partition())) {
      return;
    }
    Position position = new Position();
    List<String> sealed = new ArrayList<>();
    List<String> unsealed = new ArrayList<>();
    receive(place, sealed, unsealed);
    List<String> counted = sealed;
    if (sealed.isEmpty() && place.offset() > 0) {
      System.err.println("partition " + place.partition() + " has no position yet"
          + (unsealed.isEmpty() ? "" : " with the seal of this bridge") + ", and begins at " + place.offset());
      // One of an older version or another secret; no version leaves one where nothing was ever confirmed.
      counted = unsealed;
    } else {
      unsealed.forEach(each -> leaveOut(place.partition(), "has no seal of this bridge"));
    }
    for (String each : counted) {
      if (!position.add(each, place.end())) {
        leaveOut(place.partition(), "is not a position in the topic");
      }
    }
    send(place.partition(), position);
    session.commit();
    known.put(place.partition(), position);
  }

  /** Receives the messages of a partition; the transaction takes all of them out of the queue, own ones or not. */
  private void receive(Place place, List<String> sealed, List<String> unsealed) throws JMSException {
    MessageConsumer consumer = consumer(place.partition());
    // The transaction of a connection that broke may hold it. The first record of a partition has no predecessor.
    long until = System.currentTimeMillis() + (place.offset() == 0 ? OTHERS_MILLISECONDS : HELD_MILLISECONDS);
    for (long left = until - System.currentTimeMillis(); left > 0; left = until - System.currentTimeMillis()) {
      Message found = consumer.receive(left);
      if (found == null) {
        return;
      }
      String text = text(found);
      if (seals.hold(name(place.partition()), text)) {
        sealed.add(text);
        until = System.currentTimeMillis() + OTHERS_MILLISECONDS;
      } else {
        // The bridge's own may still be held by another connection, so this one ends no wait for it.
        unsealed.add(text);
      }
    }
  }

  private static void leaveOut(int partition, String why) {
    System.err.println("a message of the position queue for partition " + partition
        + " is left out and removed, since it " + why + ": others write to that queue");
  }

  /** The text of a message; empty if it has none. */
  private static String text(Message message) throws JMSException {
    String found = message instanceof TextMessage given ? given.getText() : null;
    return found == null ? "" : found;
  }

  /** Whether the broker has a message already; its partition has to be known. */
  boolean has(Place place) {
    Position position = known.get(place.partition());
    return place.offset() <= position.offset
        && place.time() <= position.time
        && !position.refused.contains(place.offset());
  }

  /** Takes note of a message that the open transaction sends; one that is refused is tried again, should it come again. */
  void done(Place place, boolean isRefused) {
    known.get(place.partition()).done(place, isRefused);
  }

  /** Puts the changed positions into the open transaction, in place of those that the broker has. */
  void move() throws JMSException {
    for (Map.Entry<Integer, Position> each : known.entrySet()) {
      Position position = each.getValue();
      if (position.hasChanged) {
        take(each.getKey(), position);
        send(each.getKey(), position);
      }
    }
  }

  /** Receives the position that this connection has put into the queue, and whatever others have put before it. */
  private void take(int partition, Position position) throws JMSException {
    long until = System.currentTimeMillis() + HELD_MILLISECONDS;
    while (true) {
      Message found = consumer(partition).receive(Math.max(1, until - System.currentTimeMillis()));
      if (found != null && text(found).equals(position.text)) {
        return;
      }
      if (found == null || seals.hold(name(partition), text(found)) || System.currentTimeMillis() > until) {
        throw new IllegalStateException("another connection has moved the position of partition " + partition);
      }
      leaveOut(partition, "has no seal of this bridge");
    }
  }

  /** Forgets all positions after a transaction that failed or is in doubt; they are asked for again. */
  void forget() {
    known.clear();
  }

  private MessageConsumer consumer(int partition) throws JMSException {
    MessageConsumer found = consumers.get(partition);
    if (found == null) {
      found = session.createConsumer(queue, PROPERTY + " = '" + name(partition).replace("'", "''") + "'");
      consumers.put(partition, found);
    }
    return found;
  }

  private void send(int partition, Position position) throws JMSException {
    TextMessage message = session.createTextMessage(position.write(name(partition), seals));
    message.setStringProperty(PROPERTY, name(partition));
    producer.send(message, DeliveryMode.PERSISTENT, Message.DEFAULT_PRIORITY, 0);
  }

  private String name(int partition) {
    return owner + "/" + partition;
  }
}
