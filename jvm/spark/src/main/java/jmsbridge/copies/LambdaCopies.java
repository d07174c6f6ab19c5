package jmsbridge.copies;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/**
 * Program of set-up that copies jars, with a class in place of each serializable lambda of Scala.
 *
 * <p>Java makes the class of a lambda when it is first used, and keeps none of a serializable one in a class-data
 * archive. Spark's JVM makes thousands of them in its first seconds.
 */
public final class LambdaCopies {
  private LambdaCopies() {}

  /**
   * Runs it.
   *
   * @param arguments jars to copy, each followed by its copy; those that change in nothing get no copy
   */
  public static void main(String[] arguments) throws IOException {
    for (int index = 0; index < arguments.length; index += 2) {
      copy(Path.of(arguments[index]), Path.of(arguments[index + 1]));
    }
  }

  private static void copy(Path from, Path to) throws IOException {
    Path unfinished = Path.of(to + ".new");
    boolean changed = false;
    try (ZipFile jar = new ZipFile(from.toFile());
        ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(unfinished))) {
      for (ZipEntry entry : Collections.list(jar.entries())) {
        Map<String, byte[]> files = new LinkedHashMap<>();
        try (InputStream in = jar.getInputStream(entry)) {
          files.put(entry.getName(), in.readAllBytes());
        }
        if (entry.getName().endsWith(".class") && !entry.getName().startsWith("META-INF/")) {
          files = converted(files.get(entry.getName()));
          changed |= files.size() > 1;
        }
        for (Map.Entry<String, byte[]> file : files.entrySet()) {
          out.putNextEntry(new ZipEntry(file.getKey()));
          out.write(file.getValue());
        }
      }
    }
    if (changed) {
      Files.move(unfinished, to, StandardCopyOption.ATOMIC_MOVE);
    } else {
      Files.delete(unfinished);
    }
  }

  /** Class files by name: that of a class, unchanged if it has no such lambdas, and those in place of its lambdas. */
  static Map<String, byte[]> converted(byte[] content) {
    ClassReader reader = new ClassReader(content);
    ClassWriter writer = new ClassWriter(reader, 0);
    Converter converter = new Converter(writer);
    reader.accept(converter, 0);
    Map<String, byte[]> files = new LinkedHashMap<>();
    files.put(reader.getClassName() + ".class", converter.made.isEmpty() ? content : writer.toByteArray());
    files.putAll(converter.made);
    return files;
  }

  private static final class Converter extends ClassVisitor {
    private final Map<String, byte[]> made = new LinkedHashMap<>();
    private int version;
    private String owner;

    Converter(ClassWriter writer) {
      super(Opcodes.ASM9, writer);
    }

    @Override
    public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
      this.version = version;
      this.owner = name;
      super.visit(version, access, name, signature, parent, interfaces);
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] exceptions) {
      return new MethodVisitor(Opcodes.ASM9, super.visitMethod(access, name, type, signature, exceptions)) {
        @Override
        public void visitInvokeDynamicInsn(String method, String site, Handle bootstrap, Object... arguments) {
          String lambda = owner + "$$Lambda$" + made.size();
          LambdaClass found = LambdaClass.of(owner, lambda, method, site, bootstrap, arguments);
          if (found == null) {
            super.visitInvokeDynamicInsn(method, site, bootstrap, arguments);
          } else {
            made.put(lambda + ".class", found.bytes(version));
            super.visitMethodInsn(Opcodes.INVOKESTATIC, lambda, LambdaClass.MAKER, site, false);
          }
        }
      };
    }
  }
}
