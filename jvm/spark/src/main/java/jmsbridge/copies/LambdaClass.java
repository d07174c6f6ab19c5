package jmsbridge.copies;

import static org.apache.xbean.asm9.Opcodes.ACC_FINAL;
import static org.apache.xbean.asm9.Opcodes.ACC_PRIVATE;
import static org.apache.xbean.asm9.Opcodes.ACC_PUBLIC;
import static org.apache.xbean.asm9.Opcodes.ACC_STATIC;
import static org.apache.xbean.asm9.Opcodes.ACC_SUPER;
import static org.apache.xbean.asm9.Opcodes.ACC_SYNTHETIC;

import java.io.Serializable;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.SerializedLambda;
import java.util.ArrayList;
import java.util.List;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;
import org.apache.xbean.asm9.commons.GeneratorAdapter;
import org.apache.xbean.asm9.commons.Method;

/** Class file that does what one serializable lambda of Scala does, and that has the same serialized form. */
final class LambdaClass {
  /** Name of the static method that makes the lambda; it has the type of the instruction. */
  static final String MAKER = "make";

  private static final String BOOTSTRAP = "altMetafactory";
  private static final String FACTORY = Type.getInternalName(LambdaMetafactory.class);
  private static final Type SERIALIZED = Type.getType(SerializedLambda.class);
  private static final Type OBJECT = Type.getType(Object.class);
  private static final Type SERIALIZABLE = Type.getType(Serializable.class);

  /** What the names of methods with the bodies of Scala's lambdas begin with: public ones, unlike those of Java. */
  private static final String BODY = "$anonfun$";

  private static final String INSTANCE = "INSTANCE";
  private static final Method REPLACE = new Method("writeReplace", OBJECT, new Type[0]);

  private final String owner;
  private final String method;
  private final Type[] captured;
  private final Type function;
  private final Handle body;
  private final Type instantiated;
  private final List<Type> shapes;
  private final List<Type> interfaces;
  private final Type self;

  private LambdaClass(
      String owner,
      String name,
      String method,
      String site,
      Handle body,
      Type instantiated,
      List<Type> shapes,
      List<Type> markers) {
    this.owner = owner;
    this.method = method;
    this.captured = Type.getArgumentTypes(site);
    this.function = Type.getReturnType(site);
    this.body = body;
    this.instantiated = instantiated;
    this.shapes = shapes;
    this.interfaces = new ArrayList<>(List.of(function, SERIALIZABLE));
    markers.stream().filter(each -> !interfaces.contains(each)).forEach(interfaces::add);
    this.self = Type.getObjectType(name);
  }

  /**
   * The class for the instruction that makes a lambda.
   *
   * @param owner internal name of the class that has the instruction
   * @param name internal name of the class to make
   * @param method name of the method that the lambda implements
   * @param site type of the instruction: from what the lambda captures to the lambda
   * @param bootstrap bootstrap method of the instruction
   * @param arguments the arguments of that method
   * @return null if it is another instruction, or the lambda is not one of those that Scala makes
   */
  static LambdaClass of(String owner, String name, String method, String site, Handle bootstrap, Object... arguments) {
    if (!bootstrap.getOwner().equals(FACTORY) || !bootstrap.getName().equals(BOOTSTRAP)) {
      return null;
    }
    int flags = (Integer) arguments[3];
    Handle body = (Handle) arguments[1];
    if ((flags & LambdaMetafactory.FLAG_SERIALIZABLE) == 0
        || body.getTag() != Opcodes.H_INVOKESTATIC
        || !body.getOwner().equals(owner)
        || !body.getName().startsWith(BODY)) {
      return null;
    }
    int next = 4;
    List<Type> markers = new ArrayList<>();
    if ((flags & LambdaMetafactory.FLAG_MARKERS) != 0) {
      next = read(arguments, next, markers);
    }
    List<Type> shapes = new ArrayList<>(List.of((Type) arguments[0]));
    if ((flags & LambdaMetafactory.FLAG_BRIDGES) != 0) {
      read(arguments, next, shapes);
    }
    LambdaClass made = new LambdaClass(owner, name, method, site, body, (Type) arguments[2], shapes, markers);
    return shapes.stream().allMatch(made::fits) ? made : null;
  }

  private static int read(Object[] arguments, int at, List<Type> found) {
    int end = at + 1 + (Integer) arguments[at];
    for (int index = at + 1; index < end; index++) {
      found.add((Type) arguments[index]);
    }
    return end;
  }

  /** True if a method of this shape calls the body with nothing but casts of references. */
  private boolean fits(Type shape) {
    Type[] given = shape.getArgumentTypes();
    Type[] wanted = Type.getArgumentTypes(body.getDesc());
    boolean fits =
        wanted.length == captured.length + given.length
            && agree(Type.getReturnType(body.getDesc()), shape.getReturnType());
    for (int index = 0; fits && index < wanted.length; index++) {
      fits = agree(index < captured.length ? captured[index] : given[index - captured.length], wanted[index]);
    }
    return fits;
  }

  private static boolean agree(Type from, Type to) {
    return from.equals(to) || isReference(from) && isReference(to);
  }

  private static boolean isReference(Type type) {
    return type.getSort() >= Type.ARRAY;
  }

  /** Content of the class file, for a version of class files. */
  byte[] bytes(int version) {
    ClassWriter out = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    String[] names = interfaces.stream().map(Type::getInternalName).toArray(String[]::new);
    int access = ACC_FINAL | ACC_SUPER | ACC_SYNTHETIC;
    out.visit(version, access, self.getInternalName(), null, OBJECT.getInternalName(), names);
    for (int index = 0; index < captured.length; index++) {
      out.visitField(ACC_PRIVATE | ACC_FINAL, field(index), captured[index].getDescriptor(), null, null).visitEnd();
    }
    Method constructor = new Method("<init>", Type.VOID_TYPE, captured);
    addConstructor(out, constructor);
    addMaker(out, constructor);
    shapes.forEach(shape -> addCall(out, shape));
    addReplacement(out);
    out.visitEnd();
    return out.toByteArray();
  }

  private static String field(int index) {
    return "captured" + index;
  }

  private static GeneratorAdapter method(ClassWriter out, int access, Method method) {
    MethodVisitor visitor = out.visitMethod(access, method.getName(), method.getDescriptor(), null, null);
    GeneratorAdapter code = new GeneratorAdapter(access, method, visitor);
    code.visitCode();
    return code;
  }

  private void addConstructor(ClassWriter out, Method constructor) {
    GeneratorAdapter code = method(out, ACC_PRIVATE, constructor);
    code.loadThis();
    code.invokeConstructor(OBJECT, new Method("<init>", "()V"));
    for (int index = 0; index < captured.length; index++) {
      code.loadThis();
      code.loadArg(index);
      code.putField(self, field(index), captured[index]);
    }
    code.returnValue();
    code.endMethod();
  }

  private void addMaker(ClassWriter out, Method constructor) {
    GeneratorAdapter code = method(out, ACC_STATIC, new Method(MAKER, function, captured));
    if (captured.length == 0) {
      addInstance(out, constructor);
      code.getStatic(self, INSTANCE, self);
    } else {
      code.newInstance(self);
      code.dup();
      code.loadArgs();
      code.invokeConstructor(self, constructor);
    }
    code.returnValue();
    code.endMethod();
  }

  /** A lambda that captures nothing is made once. */
  private void addInstance(ClassWriter out, Method constructor) {
    out.visitField(ACC_PRIVATE | ACC_STATIC | ACC_FINAL, INSTANCE, self.getDescriptor(), null, null).visitEnd();
    GeneratorAdapter code = method(out, ACC_STATIC, new Method("<clinit>", "()V"));
    code.newInstance(self);
    code.dup();
    code.invokeConstructor(self, constructor);
    code.putStatic(self, INSTANCE, self);
    code.returnValue();
    code.endMethod();
  }

  private void addCall(ClassWriter out, Type shape) {
    GeneratorAdapter code = method(out, ACC_PUBLIC, new Method(method, shape.getDescriptor()));
    Type[] given = shape.getArgumentTypes();
    Type[] wanted = Type.getArgumentTypes(body.getDesc());
    loadCaptured(code, wanted);
    for (int index = 0; index < given.length; index++) {
      code.loadArg(index);
      cast(code, given[index], wanted[captured.length + index]);
    }
    code.visitMethodInsn(Opcodes.INVOKESTATIC, body.getOwner(), body.getName(), body.getDesc(), body.isInterface());
    cast(code, Type.getReturnType(body.getDesc()), shape.getReturnType());
    code.returnValue();
    code.endMethod();
  }

  private void loadCaptured(GeneratorAdapter code, Type[] wanted) {
    for (int index = 0; index < captured.length; index++) {
      code.loadThis();
      code.getField(self, field(index), captured[index]);
      cast(code, captured[index], wanted[index]);
    }
  }

  private static void cast(GeneratorAdapter code, Type from, Type to) {
    if (isReference(to) && !from.equals(to)) {
      code.checkCast(to);
    }
  }

  /** Adds the method by which Java serializes a lambda: as a description, from which the owner makes it again. */
  private void addReplacement(ClassWriter out) {
    GeneratorAdapter code = method(out, ACC_PRIVATE | ACC_FINAL, REPLACE);
    code.newInstance(SERIALIZED);
    code.dup();
    code.push(Type.getObjectType(owner));
    code.push(function.getInternalName());
    code.push(method);
    code.push(shapes.get(0).getDescriptor());
    code.push(Opcodes.H_INVOKESTATIC);
    code.push(body.getOwner());
    code.push(body.getName());
    code.push(body.getDesc());
    code.push(instantiated.getDescriptor());
    code.push(captured.length);
    code.newArray(OBJECT);
    for (int index = 0; index < captured.length; index++) {
      code.dup();
      code.push(index);
      code.loadThis();
      code.getField(self, field(index), captured[index]);
      code.valueOf(captured[index]);
      code.arrayStore(OBJECT);
    }
    Type text = Type.getType(String.class);
    Type[] parts = {
      Type.getType(Class.class), text, text, text, Type.INT_TYPE, text, text, text, text, Type.getType(Object[].class)
    };
    code.invokeConstructor(SERIALIZED, new Method("<init>", Type.VOID_TYPE, parts));
    code.returnValue();
    code.endMethod();
  }
}
