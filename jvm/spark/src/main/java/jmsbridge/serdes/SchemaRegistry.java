package jmsbridge.serdes;

import java.io.Serializable;
import java.util.Collection;

/** Registry of schemas. Methods throw RegistryException if the registry cannot be reached or refuses a request. */
public interface SchemaRegistry extends Serializable {
  /** A version of a subject, with its number there and the id of its schema. */
  record Version(int number, int id, SchemaText schema) {}

  /** A schema with the name of its format. */
  record Typed(String type, SchemaText schema) implements Serializable {}

  /** The schema of an id, of whatever format; UnfitValueException if the registry says that there is none. */
  Typed typed(int id);

  /** The schema of an id; UnfitValueException if the registry says that there is none, or that it is of another type. */
  SchemaText schema(String type, int id);

  /** Begins to ask for ids that will be needed. */
  default void expect(String type, Collection<Integer> ids) {}

  /** A version of a subject; 0: the latest. */
  Version version(String type, String subject, int version);

  /** The id of a schema, which becomes a version of the subject unless it is one already. */
  int register(String type, String subject, SchemaText schema);

  /** The id of a schema that is a version of the subject. */
  int lookUp(String type, String subject, SchemaText schema);
}
