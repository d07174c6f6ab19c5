package jmsbridge.bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * The values of a JSON body, and the body as Avro in Confluent's wire format. A parser's tokens are written at once to
 * a buffer that is used again for each message, without a tree between; fields in another order than the schema's
 * (`BODY_SCHEMA` in `bench/workload.py`) are put in order at the end of their record.
 */
final class AvroFields extends BodyFields {
    private enum Type { LONG, DOUBLE, BOOLEAN, TEXT, RECORD, ARRAY }

    /** A record of the schema, with the places of its fields in the buffer while one is written. */
    private static final class Shape {
        final String[] names;
        final Type[] types;
        /** The record in a field that is one, or that is an array of them. */
        final Shape[] inner;
        final int[] starts;
        final int[] ends;

        Shape(String names, Shape[] inner, Type... types) {
            this.names = names.split(" ");
            for (int at = 0; at < types.length; at++) this.names[at] = this.names[at].intern();
            this.types = types;
            this.inner = inner;
            starts = new int[types.length];
            ends = new int[types.length];
        }

        /** Number of a field, which most likely is the `next` one. The parser's names are interned. */
        int field(String name, int next) {
            if (next < names.length && names[next] == name) return next;
            for (int at = 0; at < names.length; at++) if (names[at] == name) return at;
            return -1;
        }
    }

    private static final JsonFactory JSON =
        JsonFactory.builder().enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER).build();
    private static final int KIND = 1;
    private static final int REGION = 1;

    private final Shape customer = new Shape("name region tier", null, Type.TEXT, Type.TEXT, Type.LONG);
    private final Shape line = new Shape("sku amount count", null, Type.TEXT, Type.DOUBLE, Type.LONG);
    private final Shape order = new Shape(
        "id kind customer placed lines paid note", new Shape[] {null, null, customer, null, line, null, null},
        Type.LONG, Type.TEXT, Type.RECORD, Type.TEXT, Type.ARRAY, Type.BOOLEAN, Type.TEXT);
    private byte[] buffer = new byte[1024];
    private int size;
    private final int head;

    AvroFields(int schemaId) {
        ByteBuffer.wrap(buffer).put((byte) 0).putInt(schemaId);
        head = 1 + Integer.BYTES;
    }

    @Override
    void read(byte[] body) {
        kind = null;
        region = null;
        size = head;
        try (JsonParser parser = JSON.createParser(body)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) return;
            write(parser, order);
            if (!isUnrouted() && parser.nextToken() != null) kind = null;
        } catch (IOException notJson) {
            kind = null;
        }
    }

    @Override
    byte[] changed(byte[] body) {
        return Arrays.copyOf(buffer, size);
    }

    private void write(JsonParser parser, Shape shape) throws IOException {
        int begin = size;
        int count = 0;
        boolean isInOrder = true;
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            int field = shape.field(parser.currentName(), count);
            parser.nextToken();
            if (field < 0) {
                parser.skipChildren();
                continue;
            }
            shape.starts[field] = size;
            write(parser, shape, field);
            shape.ends[field] = size;
            isInOrder &= field == count++;
            if (shape == order && field == KIND) kind = parser.getText();
            else if (shape == customer && field == REGION) region = parser.getText();
            else if (shape == order && isUnrouted()) return;
        }
        if (count != shape.names.length) throw new IllegalStateException("fields that are missing or repeated");
        if (!isInOrder) order(shape, begin);
    }

    private void write(JsonParser parser, Shape shape, int field) throws IOException {
        switch (shape.types[field]) {
            case LONG -> put(parser.getLongValue());
            case DOUBLE -> put(parser.getDoubleValue());
            case BOOLEAN -> put(parser.getBooleanValue() ? (byte) 1 : 0);
            case TEXT -> put(parser.getTextCharacters(), parser.getTextOffset(), parser.getTextLength());
            case RECORD -> write(parser, shape.inner[field]);
            case ARRAY -> writeAll(parser, shape.inner[field]);
        }
    }

    /** Writes an array in one block, whose number of elements is known at its end: one byte for up to 63. */
    private void writeAll(JsonParser parser, Shape shape) throws IOException {
        int at = size;
        put((byte) 0);
        int count = 0;
        while (parser.nextToken() == JsonToken.START_OBJECT) {
            write(parser, shape);
            count++;
        }
        if (count > 63) throw new IllegalStateException("more than 63 elements");
        buffer[at] = (byte) (count << 1);
        if (count > 0) put((byte) 0);
    }

    private void order(Shape shape, int begin) {
        byte[] written = Arrays.copyOfRange(buffer, begin, size);
        int to = begin;
        for (int field = 0; field < shape.names.length; field++) {
            int length = shape.ends[field] - shape.starts[field];
            System.arraycopy(written, shape.starts[field] - begin, buffer, to, length);
            to += length;
        }
    }

    private void put(byte value) {
        ensure(1);
        buffer[size++] = value;
    }

    private void put(long value) {
        ensure(10);
        long left = value << 1 ^ value >> 63;
        while ((left & ~0x7FL) != 0) {
            buffer[size++] = (byte) (left | 0x80);
            left >>>= 7;
        }
        buffer[size++] = (byte) left;
    }

    private void put(double value) {
        ensure(Double.BYTES);
        long bits = Double.doubleToLongBits(value);
        for (int shift = 0; shift < Long.SIZE; shift += Byte.SIZE) buffer[size++] = (byte) (bits >> shift);
    }

    private void put(char[] text, int offset, int length) {
        int begin = size;
        put((long) length);
        ensure(length);
        byte[] into = buffer;
        int to = size;
        for (int at = offset; at < offset + length; at++) {
            char each = text[at];
            if (each >= 0x80) {
                size = begin;
                putWide(new String(text, offset, length).getBytes(UTF_8));
                return;
            }
            into[to++] = (byte) each;
        }
        size = to;
    }

    private void putWide(byte[] text) {
        put((long) text.length);
        ensure(text.length);
        System.arraycopy(text, 0, buffer, size, text.length);
        size += text.length;
    }

    private void ensure(int more) {
        if (size + more > buffer.length) buffer = Arrays.copyOf(buffer, Math.max(2 * buffer.length, size + more));
    }
}
