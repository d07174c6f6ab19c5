package jmsbridge.jms.api;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import java.lang.reflect.Method;

/**
 * The serialised bytes of object messages, as they are: nothing here makes an object of them.
 *
 * <p>JMS has no way to them, so there is one for each provider, by reflection.
 */
final class Opaque {
  private Opaque() {}

  /** The bytes; MessageFormatException where the provider gives only the object. */
  static byte[] bytes(ObjectMessage message) throws JMSException {
    try {
      if (has(message, "getCoreMessage")) {
        // Artemis: a length and the bytes.
        Object buffer = call(call(message, "getCoreMessage"), "getReadOnlyBodyBuffer");
        byte[] found = new byte[(int) call(buffer, "readInt")];
        method(buffer, "readBytes", byte[].class).invoke(buffer, (Object) found);
        return found;
      }
      if (has(message, "getContent")) {
        // ActiveMQ Classic: a part of an array, which may be compressed.
        Object sequence = call(message, "getContent");
        if (sequence == null) {
          return new byte[0];
        }
        if (Boolean.TRUE.equals(call(message, "isCompressed"))) {
          throw new MessageFormatException("the object of the message is compressed");
        }
        byte[] data = (byte[]) call(sequence, "getData");
        int offset = (int) call(sequence, "getOffset");
        return java.util.Arrays.copyOfRange(data, offset, offset + (int) call(sequence, "getLength"));
      }
      if (has(message, "getFacade")) {
        // Qpid JMS: the section of AMQP that is the body.
        Object facade = call(message, "getFacade");
        Object section = hidden(facade, "getBody").invoke(facade);
        Object binary = section == null ? null : call(section, "getValue");
        if (binary != null && has(binary, "getArray")) {
          byte[] data = (byte[]) call(binary, "getArray");
          int offset = (int) call(binary, "getArrayOffset");
          return java.util.Arrays.copyOfRange(data, offset, offset + (int) call(binary, "getLength"));
        }
      }
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new MessageFormatException("the bytes of the object cannot be had: " + error);
    }
    throw new MessageFormatException("this client gives no way to the bytes of an object message");
  }

  /** An object message of serialised bytes; MessageFormatException where the provider takes only an object. */
  static Message message(Session session, byte[] body) throws JMSException {
    ObjectMessage message = session.createObjectMessage();
    try {
      if (has(message, "getCoreMessage")) {
        Object buffer = call(call(message, "getCoreMessage"), "getBodyBuffer");
        byte[] length = java.nio.ByteBuffer.allocate(4).putInt(body.length).array();
        Method write = method(buffer, "writeBytes", byte[].class);
        write.invoke(buffer, (Object) length);
        write.invoke(buffer, (Object) body);
        java.lang.reflect.Field data = message.getClass().getDeclaredField("data");
        data.setAccessible(true);
        data.set(message, body);
        return message;
      }
      if (has(message, "setContent")) {
        Class<?> type = method(message, "getContent").getReturnType();
        Object sequence = type.getConstructor(byte[].class).newInstance((Object) body);
        method(message, "setContent", type).invoke(message, sequence);
        return message;
      }
      if (has(message, "getFacade")) {
        Object facade = call(message, "getFacade");
        Method set = hidden(facade, "setBody");
        ClassLoader loader = message.getClass().getClassLoader();
        Class<?> binary = Class.forName("org.apache.qpid.proton.amqp.Binary", true, loader);
        Class<?> data = Class.forName("org.apache.qpid.proton.amqp.messaging.Data", true, loader);
        Object bytes = binary.getConstructor(byte[].class).newInstance((Object) body);
        set.invoke(facade, data.getConstructor(binary).newInstance(bytes));
        return message;
      }
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new MessageFormatException("the bytes of the object cannot be given: " + error);
    }
    throw new MessageFormatException("this client takes no object message as bytes");
  }

  private static boolean has(Object target, String name) {
    for (Method each : target.getClass().getMethods()) {
      if (each.getName().equals(name)) {
        return true;
      }
    }
    return false;
  }

  private static Object call(Object target, String name) throws ReflectiveOperationException {
    return method(target, name).invoke(target);
  }

  /** A method that may not be public, of the class or one above it. */
  private static Method hidden(Object target, String name) throws NoSuchMethodException {
    for (Class<?> each = target.getClass(); each != null; each = each.getSuperclass()) {
      for (Method found : each.getDeclaredMethods()) {
        if (found.getName().equals(name)) {
          found.setAccessible(true);
          return found;
        }
      }
    }
    throw new NoSuchMethodException(target.getClass().getName() + "." + name);
  }

  private static Method method(Object target, String name, Class<?>... types) throws ReflectiveOperationException {
    Method found = target.getClass().getMethod(name, types);
    found.setAccessible(true);
    return found;
  }
}
