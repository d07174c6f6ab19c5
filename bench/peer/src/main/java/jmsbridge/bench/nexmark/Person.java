package jmsbridge.bench.nexmark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A person. */
record Person(long id, String name, String city, String state, long time) {
    static byte[] bytes(Person person) {
        byte[] text = String.join("\n", person.name, person.city, person.state).getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(16 + text.length).putLong(person.id).putLong(person.time).put(text).array();
    }

    static Person of(byte[] data) {
        ByteBuffer bytes = ByteBuffer.wrap(data);
        String[] text = new String(data, 16, data.length - 16, StandardCharsets.UTF_8).split("\n");
        return new Person(bytes.getLong(), text[0], text[1], text[2], bytes.getLong());
    }
}
