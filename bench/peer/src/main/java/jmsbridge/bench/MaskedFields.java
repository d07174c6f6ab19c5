package jmsbridge.bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.Arrays;

import static java.nio.charset.StandardCharsets.US_ASCII;

/**
 * The values of a JSON body, and the body with `id` and `customer.name` masked and all other bytes as they are. It is
 * read to its end, so that a second field of the same name is masked as well, and one that is not JSON never leaves.
 */
final class MaskedFields extends BodyFields {
    private static final JsonFactory JSON = new JsonFactory();
    private static final byte[] STARS = "\"***\"".getBytes(US_ASCII);

    /** First byte of each masked value, and the one behind it. */
    private int[] places = new int[8];
    private int placed;

    @Override
    void read(byte[] body) {
        kind = null;
        region = null;
        placed = 0;
        try (JsonParser parser = JSON.createParser(body)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) return;
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                JsonToken value = parser.nextToken();
                if (name.equals("id")) mask(parser);
                else if (name.equals("kind") && value == JsonToken.VALUE_STRING) kind = parser.getText();
                else if (name.equals("customer") && value == JsonToken.START_OBJECT) readCustomer(parser);
                else parser.skipChildren();
                if (isUnrouted()) return;
            }
            if (parser.nextToken() != null) kind = null;
        } catch (IOException notJson) {
            kind = null;
        }
    }

    private void readCustomer(JsonParser parser) throws IOException {
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            String name = parser.currentName();
            JsonToken value = parser.nextToken();
            if (name.equals("name")) mask(parser);
            else if (name.equals("region") && value == JsonToken.VALUE_STRING) region = parser.getText();
            else parser.skipChildren();
        }
    }

    private void mask(JsonParser parser) throws IOException {
        if (placed == places.length) places = Arrays.copyOf(places, 2 * placed);
        places[placed++] = (int) parser.currentTokenLocation().getByteOffset();
        parser.skipChildren();
        parser.finishToken();
        places[placed++] = (int) parser.currentLocation().getByteOffset();
    }

    @Override
    byte[] changed(byte[] body) {
        int size = body.length;
        for (int at = 0; at < placed; at += 2) size += STARS.length - (places[at + 1] - places[at]);
        byte[] masked = new byte[size];
        int from = 0;
        int to = 0;
        for (int at = 0; at < placed; at += 2) {
            System.arraycopy(body, from, masked, to, places[at] - from);
            to += places[at] - from;
            System.arraycopy(STARS, 0, masked, to, STARS.length);
            to += STARS.length;
            from = places[at + 1];
        }
        System.arraycopy(body, from, masked, to, body.length - from);
        return masked;
    }
}
