package jmsbridge.jms;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Hashtable;
import java.util.Map;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NamingException;

/** Makes the connection factory of a provider: by its class and bean properties, or by JNDI. */
public final class Factories {
  private static final String[] APIS = {"javax", "jakarta"};

  private Factories() {}

  /** The names that JNDI resolves: those of the configuration, and no other. */
  public interface Names extends AutoCloseable {
    /** The object of a name. */
    Object lookup(String name) throws NamingException;

    @Override
    void close() throws NamingException;
  }

  /** The connection factory; `names` is null without JNDI. NamingException: JNDI cannot be reached. */
  static Object make(Settings settings, Names names) throws RefusedException, NamingException {
    Object made = names == null ? instance(settings.get("factory")) : names.lookup(settings.get("jndi-name"));
    if (made == null || api(made.getClass()) == null) {
      String what = made == null ? "nothing" : "a " + made.getClass().getName();
      String where = names == null ? "" : "JNDI has under '" + settings.get("jndi-name") + "' ";
      throw new RefusedException(where + what + ", which is not a connection factory of javax.jms or jakarta.jms");
    }
    for (Map.Entry<String, String> each : settings.all("property.").entrySet()) {
      set(made, each.getKey(), each.getValue());
    }
    return made;
  }

  /** The context of JNDI; null if the settings have none. */
  static Names names(Settings settings) throws NamingException {
    if (settings.get("jndi-name") == null) {
      return null;
    }
    Hashtable<String, Object> environment = new Hashtable<>(settings.all("jndi."));
    Context context = new InitialContext(environment);
    return new Names() {
      @Override
      public Object lookup(String name) throws NamingException {
        return context.lookup(name);
      }

      @Override
      public void close() throws NamingException {
        context.close();
      }
    };
  }

  /** `javax` or `jakarta`, by the connection factory that a class implements; null if it implements none. */
  static String api(Class<?> type) {
    for (String api : APIS) {
      try {
        if (Class.forName(api + ".jms.ConnectionFactory").isAssignableFrom(type)) {
          return api;
        }
      } catch (ClassNotFoundException error) {
        throw new IllegalStateException(error);
      }
    }
    return null;
  }

  private static Object instance(String name) throws RefusedException {
    try {
      Class<?> type = Class.forName(name);
      Constructor<?> alone = constructor(type);
      if (alone != null) {
        return alone.newInstance();
      }
      // Amazon SQS has its settings in an object of their own.
      for (Constructor<?> each : type.getConstructors()) {
        Constructor<?> inner = each.getParameterCount() == 1 ? constructor(each.getParameterTypes()[0]) : null;
        if (inner != null) {
          return each.newInstance(inner.newInstance());
        }
      }
      throw new RefusedException("class " + name + " has no constructor without arguments; use JNDI");
    } catch (ClassNotFoundException error) {
      throw new RefusedException("no class " + error.getMessage() + " in the class path");
    } catch (InvocationTargetException error) {
      throw new RefusedException("class " + name + ": " + error.getCause());
    } catch (ReflectiveOperationException | LinkageError error) {
      throw new RefusedException("class " + name + " cannot be used: " + error);
    }
  }

  private static Constructor<?> constructor(Class<?> type) {
    try {
      return Modifier.isAbstract(type.getModifiers()) ? null : type.getConstructor();
    } catch (NoSuchMethodException error) {
      return null;
    }
  }

  /** Calls the setter of a bean property; of several the one whose type the text fits. */
  private static void set(Object bean, String name, String text) throws RefusedException {
    String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
    String why = "has no property '" + name + "'";
    boolean hasSetter = false;
    for (Method each : bean.getClass().getMethods()) {
      if (!each.getName().equals(setter) || each.getParameterCount() != 1) {
        continue;
      }
      hasSetter = true;
      Class<?> type = each.getParameterTypes()[0];
      try {
        each.invoke(bean, value(type, text));
        return;
      } catch (IllegalArgumentException error) {
        why = "takes for '" + name + "' a " + type.getSimpleName() + ", which the value is not";
      } catch (InvocationTargetException error) {
        why = "refuses the value of '" + name + "': " + error.getCause();
      } catch (IllegalAccessException error) {
        why = "has a property '" + name + "' that is not public";
      }
    }
    if (hasSetter || !setByName(bean, name, text)) {
      throw new RefusedException(bean.getClass().getName() + " " + why);
    }
  }

  /** Sets a property that has no setter of its own, as all of OpenMQ; false if the class has no method for that. */
  private static boolean setByName(Object bean, String name, String text) throws RefusedException {
    try {
      bean.getClass().getMethod("setProperty", String.class, String.class).invoke(bean, name, text);
      return true;
    } catch (NoSuchMethodException error) {
      return false;
    } catch (InvocationTargetException error) {
      throw new RefusedException(bean.getClass().getName() + " refuses '" + name + "': " + error.getCause());
    } catch (IllegalAccessException error) {
      return false;
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Object value(Class<?> type, String text) {
    if (type == String.class || type == Object.class) {
      return text;
    } else if (type == char[].class) {
      return text.toCharArray();
    } else if (type == boolean.class || type == Boolean.class) {
      if (!text.equalsIgnoreCase("true") && !text.equalsIgnoreCase("false")) {
        throw new IllegalArgumentException(text);
      }
      return Boolean.valueOf(text);
    } else if (type == int.class || type == Integer.class) {
      return Integer.valueOf(text);
    } else if (type == long.class || type == Long.class) {
      return Long.valueOf(text);
    } else if (type == short.class || type == Short.class) {
      return Short.valueOf(text);
    } else if (type == byte.class || type == Byte.class) {
      return Byte.valueOf(text);
    } else if (type == double.class || type == Double.class) {
      return Double.valueOf(text);
    } else if (type == float.class || type == Float.class) {
      return Float.valueOf(text);
    } else if (type.isEnum()) {
      return Enum.valueOf((Class<Enum>) type, text);
    }
    throw new IllegalArgumentException(text);
  }
}
