package jmsbridge.bench.nexmark;

import java.nio.charset.StandardCharsets;

/** A JSON object that is written field by field; texts of Nexmark need no escapes. */
final class Json {
    private final StringBuilder text = new StringBuilder(256);
    private char before = '{';

    Json number(String name, long value) {
        name(name).append(value);
        return this;
    }

    /** A number with three decimal places, given in thousandths. */
    Json thousandths(String name, long value) {
        long rest = value % 1000;
        name(name).append(value / 1000).append(rest < 10 ? ".00" : rest < 100 ? ".0" : ".").append(rest);
        return this;
    }

    Json text(String name, String value) {
        name(name).append('"').append(value).append('"');
        return this;
    }

    /** A value that is JSON already. */
    Json raw(String name, String value) {
        name(name).append(value);
        return this;
    }

    @Override
    public String toString() {
        return text + "}";
    }

    byte[] bytes() {
        return text.append('}').toString().getBytes(StandardCharsets.UTF_8);
    }

    private StringBuilder name(String name) {
        text.append(before).append('"').append(name).append("\":");
        before = ',';
        return text;
    }
}
