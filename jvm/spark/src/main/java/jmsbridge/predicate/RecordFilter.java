package jmsbridge.predicate;

import jmsbridge.kafka.HeaderArray;
import jmsbridge.serdes.Documents;

/** A predicate over Kafka records, for code without Spark; one thread uses an object. */
public final class RecordFilter {
  private final Rules rules;
  private final Documents documents = Documents.used();
  private final Bounds bounds = Bounds.used();
  private final Fields.Recent recent = new Fields.Recent();

  /** Filter of a table with one rule, in the JSON of {@code routes/predicate/rule_json.py}. */
  public RecordFilter(String json) {
    rules = new Rules(json);
  }

  /** Whether the predicate asks for bodies. */
  public boolean asksForBody() {
    return rules.asksForBody;
  }

  /** Whether the predicate is true for a record; the body may be null, and is only needed if it is asked for. */
  public boolean takes(HeaderArray headers, byte[] body) {
    Body asked = rules.asksForBody ? new Body(rules.paths, documents, bounds, headers, body) : null;
    return rules.first(new Fields(rules.names, recent, headers, asked)) != null;
  }
}
