package jmsbridge.bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;

/** `kind` and `customer.region` of a JSON body, which is read no further than to the second. */
final class JsonFields extends BodyFields {
    private static final JsonFactory JSON = new JsonFactory();

    @Override
    void read(byte[] body) {
        kind = null;
        region = null;
        try (JsonParser parser = JSON.createParser(body)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) return;
            while ((kind == null || region == null) && parser.nextToken() == JsonToken.FIELD_NAME) {
                String name = parser.currentName();
                JsonToken value = parser.nextToken();
                if (name.equals("kind") && value == JsonToken.VALUE_STRING) kind = parser.getText();
                else if (name.equals("customer") && value == JsonToken.START_OBJECT) readCustomer(parser);
                else parser.skipChildren();
            }
        } catch (IOException notJson) {
            kind = null;
        }
    }

    private void readCustomer(JsonParser parser) throws IOException {
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            boolean isRegion = parser.currentName().equals("region");
            if (parser.nextToken() == JsonToken.VALUE_STRING && isRegion) region = parser.getText();
            else parser.skipChildren();
            if (region != null && kind != null) return;
        }
    }
}
