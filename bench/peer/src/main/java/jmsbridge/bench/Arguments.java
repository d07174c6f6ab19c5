package jmsbridge.bench;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The `name=value` arguments of these programs. */
public final class Arguments {
    private final Map<String, String> values = new HashMap<>();

    public Arguments(String[] arguments) {
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (equals < 1) throw new IllegalArgumentException("expected name=value, got '" + argument + "'");
            values.put(argument.substring(0, equals), argument.substring(equals + 1));
        }
    }

    public String text(String name) {
        String value = values.get(name);
        if (value == null) throw new IllegalArgumentException("missing argument " + name + "=");
        return value;
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    long number(String name) {
        return Long.parseLong(text(name));
    }

    long number(String name, long otherwise) {
        return Long.parseLong(text(name, Long.toString(otherwise)));
    }

    List<String> list(String name) {
        return List.of(text(name).split(","));
    }
}
