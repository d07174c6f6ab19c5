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
        // Qpid JMS: what deserialises is asked for its bytes.
        Object delegate = call(call(message, "getFacade"), "getDelegate");
        Object section = callHidden(delegate, "getBody");
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

  private static Object callHidden(Object target, String name) throws ReflectiveOperationException {
    for (Class<?> each = target.getClass(); each != null; each = each.getSuperclass()) {
      try {
        Method found = each.getDeclaredMethod(name);
        found.setAccessible(true);
        return found.invoke(target);
      } catch (NoSuchMethodException above) {
        continue;
      }
    }
    return null;
  }

  private static Method method(Object target, String name, Class<?>... types) throws ReflectiveOperationException {
    Method found = target.getClass().getMethod(name, types);
    found.setAccessible(true);
    return found;
  }
}
