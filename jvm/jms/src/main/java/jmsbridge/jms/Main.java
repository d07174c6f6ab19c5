package jmsbridge.jms;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.OutputStream;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import javax.naming.NamingException;

/**
 * The connection of one worker of a source or sink by a provider's own client, in a process of its own.
 *
 * <p>Reads frames from standard input, and writes frames to the file that its argument names. What the provider prints goes
 * to standard output and error, which the worker takes into its log.
 */
public final class Main {
  private static final long ALIVE_MILLISECONDS = 1000;
  private static final long CLOSE_MILLISECONDS = 15_000;
  private static final String REJECTED = "filter status: REJECTED";

  private static volatile String refused = "";

  private Main() {}

  /** Runs until the worker closes the pipe. */
  public static void main(String[] arguments) throws Exception {
    // A call to the provider may hang for ever, and then the end of the pipe is not read.
    ProcessHandle.current().parent().ifPresent(worker -> worker.onExit().thenRun(() -> Runtime.getRuntime().halt(1)));
    OutputStream out = new FileOutputStream(arguments[0]);
    Pipe pipe = new Pipe(System.in, out);
    Pipe.Frame first = pipe.read();
    if (first == null) {
      return;
    }
    AtomicReference<Link> link = new AtomicReference<>();
    beat(pipe, link);
    Settings settings = new Settings(first.content());
    refuseOthers(settings.get("deserialized"));
    int status = 0;
    try {
      run(pipe, settings, link);
    } catch (Throwable error) {
      error.printStackTrace();
      status = 1;
    }
    // A provider may have left threads behind, which would keep this process alive.
    Runtime.getRuntime().halt(status);
  }

  /** Lets this process deserialise the classes of a filter alone (JEP 290), and remembers which class was refused. */
  private static void refuseOthers(String filter) {
    ObjectInputFilter allowed = ObjectInputFilter.Config.createFilter(filter);
    ObjectInputFilter.Config.setSerialFilter(
        asked -> {
          ObjectInputFilter.Status status = allowed.checkInput(asked);
          if (status == ObjectInputFilter.Status.REJECTED && asked.serialClass() != null) {
            refused = asked.serialClass().getName();
          }
          return status;
        });
  }

  private static void run(Pipe pipe, Settings settings, AtomicReference<Link> current) throws IOException {
    settings.all("system.").forEach(System::setProperty);
    Link link;
    try {
      Factories.Names names = Factories.names(settings);
      Object factory = Factories.make(settings, names);
      link = link(Factories.api(factory.getClass()), factory, settings, pipe, names);
    } catch (RefusedException error) {
      pipe.write(Pipe.FAILED, List.of("refused", error.getMessage()));
      return;
    } catch (NamingException error) {
      boolean login = error instanceof javax.naming.AuthenticationException;
      pipe.write(Pipe.FAILED, List.of(login ? "login" : "lost", "JNDI: " + text(error)));
      return;
    } catch (ReflectiveOperationException | LinkageError error) {
      pipe.write(Pipe.FAILED, List.of("refused", "the client jars do not fit together: " + error));
      return;
    }
    current.set(link);
    try {
      link.open();
      for (Pipe.Frame frame = pipe.read(); frame != null && frame.kind() != Pipe.CLOSE; frame = pipe.read()) {
        if (frame.kind() == Pipe.DONE) {
          link.done(frame.content().getInt(), frame.content().getLong());
        } else if (frame.kind() == Pipe.SEND) {
          link.send(frame.content());
        }
      }
      haltLater();
      link.close();
      pipe.write(Pipe.END, List.of());
    } catch (RefusedException error) {
      pipe.write(Pipe.FAILED, List.of("refused", error.getMessage()));
    } catch (LinkageError error) {
      pipe.write(Pipe.FAILED, List.of("refused", "the client jars do not fit together: " + error));
    } catch (Exception error) {
      pipe.write(Pipe.FAILED, List.of(link.isLogin(error) ? "login" : "lost", link.why(error)));
    }
  }

  private static Link link(String api, Object factory, Settings settings, Pipe pipe, Factories.Names names)
      throws ReflectiveOperationException {
    Class<?> type = Class.forName("jmsbridge.jms." + api + ".Client");
    Class<?>[] types = {Object.class, Settings.class, Pipe.class, Factories.Names.class};
    return (Link) type.getConstructor(types).newInstance(factory, settings, pipe, names);
  }

  /** Shows the worker that this process is alive, as long as no call to the provider takes very long. */
  private static void beat(Pipe pipe, AtomicReference<Link> link) {
    daemon(
        "alive",
        () -> {
          try {
            while (true) {
              Thread.sleep(ALIVE_MILLISECONDS);
              if (link.get() == null || !link.get().isStuck()) {
                pipe.write(Pipe.ALIVE, List.of());
              }
            }
          } catch (InterruptedException | IOException gone) {
            // The thread that reads the pipe ends everything.
          }
        });
  }

  private static void haltLater() {
    daemon(
        "halt",
        () -> {
          try {
            Thread.sleep(CLOSE_MILLISECONDS);
          } catch (InterruptedException now) {
            // Halts at once.
          }
          Runtime.getRuntime().halt(1);
        });
  }

  private static void daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  /** One line with the reasons of an error, the first cause last. */
  public static String text(Throwable error) {
    StringBuilder told = new StringBuilder();
    int depth = 0;
    for (Throwable each = error; each != null && depth < 5; each = each.getCause(), depth++) {
      String said = each.getMessage() == null ? each.getClass().getName() : each.getMessage();
      if (told.indexOf(said) < 0) {
        told.append(told.length() == 0 ? "" : "; because of ").append(said);
      }
    }
    if (told.indexOf(REJECTED) >= 0) {
      told.append("; the client may not deserialise ").append(refused).append(", see deserialized-classes");
    }
    return told.toString().replaceAll("\\s+", " ").strip();
  }
}
