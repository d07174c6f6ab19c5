package jmsbridge.predicate;

import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;

/**
 * Column function with the name under which {@link Functions} finds it, and the types of its arguments and its result.
 * Spark calls the method {@code invoke} of its class.
 *
 * @param <R> type of the result
 */
abstract class NamedFunction<R> implements ScalarFunction<R> {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final DataType result;
  private final DataType[] arguments;

  NamedFunction(String name, DataType result, DataType... arguments) {
    this.name = name;
    this.result = result;
    this.arguments = arguments;
  }

  @Override
  public final DataType[] inputTypes() {
    return arguments.clone();
  }

  @Override
  public final DataType resultType() {
    return result;
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String canonicalName() {
    return "jmsbridge." + name;
  }

  @Override
  public final String toString() {
    return name;
  }
}
