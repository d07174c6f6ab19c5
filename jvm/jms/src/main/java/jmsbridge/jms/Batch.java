package jmsbridge.jms;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The received messages of one frame. Messages of a queue are alike, so each text is in the frame once, and so is each list
 * of names.
 */
public final class Batch {
  private final Map<String, Integer> texts = new LinkedHashMap<>();
  private final Map<List<Integer>, Integer> shapes = new LinkedHashMap<>();
  private final Buffer messages = new Buffer();
  private int characters;
  private int count;

  /** Names of fields and properties, with the letters of their types before them, and their values. */
  public static final class Values {
    private final List<String> names = new ArrayList<>();
    private final List<String> values = new ArrayList<>();

    /** Adds a value. */
    public void add(char type, String name, String value) {
      names.add(type + name);
      values.add(value);
    }

    /** Whether there is a value of a type and a name. */
    public boolean has(char type, String name) {
      return names.contains(type + name);
    }
  }

  /** Number of messages. */
  public int count() {
    return count;
  }

  /** About the number of bytes. */
  public int size() {
    return messages.size() + characters;
  }

  /** Adds a message; `size` is that of its body as sent, of which `body` may be the beginning. */
  public void add(long size, char letter, Values given, byte[] body) {
    List<Integer> names = new ArrayList<>(given.names.size());
    for (String each : given.names) {
      names.add(index(each));
    }
    Integer shape = shapes.putIfAbsent(names, shapes.size());
    messages.u64(size);
    messages.u8(letter);
    messages.u32(shape == null ? shapes.size() - 1 : shape);
    for (String each : given.values) {
      messages.u32(index(each));
    }
    messages.sized(body);
    count++;
  }

  /** The content of the frame, for a destination; the batch is empty then. */
  public Buffer take(int destination) {
    Buffer frame = new Buffer();
    frame.u32(destination);
    frame.u32(count);
    Texts.write(frame, List.copyOf(texts.keySet()));
    frame.u32(shapes.size());
    for (List<Integer> each : shapes.keySet()) {
      frame.u32(each.size());
      each.forEach(frame::u32);
    }
    frame.append(messages);
    texts.clear();
    shapes.clear();
    messages.clear();
    characters = 0;
    count = 0;
    return frame;
  }

  private int index(String text) {
    Integer known = texts.putIfAbsent(text, texts.size());
    if (known != null) {
      return known;
    }
    characters += text.length();
    return texts.size() - 1;
  }
}
