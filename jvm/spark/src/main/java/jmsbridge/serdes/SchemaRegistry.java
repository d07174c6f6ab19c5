package jmsbridge.serdes;

import java.io.Serializable;

/** Registry of schemas. Methods throw RegistryException if the registry cannot be reached or refuses a request. */
public interface SchemaRegistry extends Serializable {
  /** A version of a subject. */
  record Version(int id, SchemaText schema) {}

  /** The schema of an id; UnfitValueException if the registry says that there is none, or that it is of another type. */
  SchemaText schema(String type, int id);

  /** A version of a subject; 0: the latest. */
  Version version(String type, String subject, int version);

  /** The id of a schema, which is made a version of the subject if it is none yet. */
  int register(String type, String subject, SchemaText schema);

  /** The id of a schema that is a version of the subject. */
  int lookUp(String type, String subject, SchemaText schema);
}
