package jmsbridge.jms.api;

import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Session;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.naming.InvalidNameException;
import javax.naming.NameNotFoundException;
import javax.naming.NamingException;
import jmsbridge.jms.Factories;
import jmsbridge.jms.Main;
import jmsbridge.jms.Pipe;
import jmsbridge.jms.RefusedException;
import jmsbridge.jms.Settings;

/** Provider behind a connection: its destinations, and the failures of the connection and of its client. */
final class Provider {
  final Settings settings;
  private final Pipe pipe;
  private final Factories.Names names;
  private final AtomicBoolean failed = new AtomicBoolean();

  /** For a connection with these settings; `names` is null without JNDI. */
  Provider(Settings settings, Pipe pipe, Factories.Names names) {
    this.settings = settings;
    this.pipe = pipe;
    this.names = names;
  }

  /** The destination of an address, such as `queue:orders`; by JNDI if the settings say so. */
  Destination destination(Session session, String address) throws JMSException, NamingException, RefusedException {
    String name = address.substring(address.indexOf(':') + 1);
    if (names != null && settings.is("jndi-destinations")) {
      try {
        if (names.lookup(name) instanceof Destination found) {
          return found;
        }
      } catch (NameNotFoundException | InvalidNameException missing) {
        // The same as a name of something else. A message may name any destination.
      }
      throw new RefusedException("JNDI has no destination '" + name + "'");
    }
    if (address.startsWith("topic:")) {
      return session.createTopic(name);
    }
    Destination temporary = TemporaryQueues.found(session, name);
    return temporary == null ? session.createQueue(name) : temporary;
  }

  /** Reports the end of the connection, once. */
  void failed(Throwable error) {
    failed(isLogin(error) ? "login" : "lost", why(error));
  }

  /** Reports a message that this client cannot read, and that stays with the provider; once. */
  void unreadable(String address, Throwable error) {
    failed(
        "unreadable",
        "the client cannot read a message of " + address + ", which stays there with all behind it: " + why(error)
            + "; read a queue of such senders with type=amqp or type=stomp, or take the message out");
  }

  private void failed(String kind, String why) {
    if (failed.compareAndSet(false, true)) {
      try {
        pipe.write(Pipe.FAILED, List.of(kind, why));
      } catch (IOException gone) {
        System.err.println("the worker has gone");
      }
    }
  }

  boolean hasFailed() {
    return failed.get();
  }

  /** Whether a login was refused. */
  boolean isLogin(Throwable error) {
    Throwable each = error;
    for (int depth = 0; each != null && depth < 5; depth++) {
      // ActiveMQ Classic throws a plain JMSException, with what its broker threw as the cause.
      if (each instanceof JMSSecurityException || each instanceof SecurityException) {
        return true;
      }
      Throwable linked = each instanceof JMSException found ? found.getLinkedException() : null;
      each = linked == null ? each.getCause() : linked;
    }
    return false;
  }

  /** One line for users, with what the provider says and its reason codes. */
  String why(Throwable error) {
    StringBuilder told = new StringBuilder(Main.text(error));
    Throwable each = error;
    for (int depth = 0; each instanceof JMSException && depth < 5; depth++) {
      JMSException found = (JMSException) each;
      if (found.getErrorCode() != null && told.indexOf(found.getErrorCode()) < 0) {
        told.append(" (").append(found.getErrorCode()).append(')');
      }
      each = found.getLinkedException();
      String linked = each == null ? "" : Main.text(each);
      if (told.indexOf(linked) < 0) {
        told.append("; because of ").append(linked);
      }
    }
    return told.toString();
  }
}
