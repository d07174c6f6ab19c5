package jmsbridge;

import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/**
 * Main program of the process that reads bodies from a file system of Hadoop for a part that has no Spark. It takes
 * names of files, a line each, until its standard input ends, and answers each with a length and so many bytes.
 */
public final class ClaimReader {
  private static final int GONE = -1;
  /** A length and a text follow. */
  private static final int FAILED = -2;

  private ClaimReader() {}

  /**
   * Runs it.
   *
   * @param arguments the file with the settings {@code spark.hadoop.*}, and the URI of the folder
   */
  public static void main(String[] arguments) throws IOException {
    // What libraries print must not be taken for an answer.
    DataOutputStream out = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
    System.setOut(System.err);
    Properties settings = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
      settings.load(reader);
    }
    settings.stringPropertyNames().forEach(name -> System.setProperty(name, settings.getProperty(name)));
    BufferedReader names = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String name = names.readLine(); name != null; name = names.readLine()) {
      try {
        byte[] body = ClaimFolder.at(arguments[1]).read(name);
        out.writeInt(body.length);
        out.write(body);
      } catch (FileNotFoundException gone) {
        out.writeInt(GONE);
      } catch (IOException | RuntimeException | LinkageError failure) {
        byte[] why = failure.toString().getBytes(StandardCharsets.UTF_8);
        out.writeInt(FAILED);
        out.writeInt(why.length);
        out.write(why);
      }
      out.flush();
    }
    System.exit(0);
  }
}
