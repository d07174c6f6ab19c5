package jmsbridge.serdes;

/**
 * Schema by which a body was written.
 *
 * @param words the schema as sentences name it
 * @param typed the schema, with the name of its format
 * @param reader reader of its values
 * @param begin place where the value begins
 */
record WriterSchema(String words, SchemaRegistry.Typed typed, DocumentReader reader, int begin) {}
