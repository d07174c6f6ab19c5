package jmsbridge.bench.nexmark;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;

/** Reads events by Jackson's streaming parser; an event of another kind is left at its first field. */
final class Events {
    private static final JsonFactory JSON = new JsonFactory();

    private Events() {}

    /** The bid in an event, or null. */
    static Bid bid(byte[] event, boolean hasText) {
        try (JsonParser json = at(event, 2)) {
            if (json == null) return null;
            long auction = 0, bidder = 0, price = 0, time = 0;
            String channel = null, url = null, extra = null;
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                String name = json.currentName();
                json.nextToken();
                switch (name) {
                    case "auction" -> auction = json.getLongValue();
                    case "bidder" -> bidder = json.getLongValue();
                    case "price" -> price = json.getLongValue();
                    case "channel" -> channel = json.getText();
                    case "url" -> url = hasText ? json.getText() : null;
                    case "dateTime" -> time = json.getLongValue();
                    case "extra" -> extra = hasText ? json.getText() : null;
                    default -> json.skipChildren();
                }
            }
            return new Bid(auction, bidder, price, channel, url, time, extra);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The auction in an event, or null. */
    static Auction auction(byte[] event) {
        try (JsonParser json = at(event, 1)) {
            if (json == null) return null;
            long id = 0, initialBid = 0, reserve = 0, time = 0, expires = 0, seller = 0, category = 0;
            String itemName = null, description = null, extra = null;
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                String name = json.currentName();
                json.nextToken();
                switch (name) {
                    case "id" -> id = json.getLongValue();
                    case "itemName" -> itemName = json.getText();
                    case "description" -> description = json.getText();
                    case "initialBid" -> initialBid = json.getLongValue();
                    case "reserve" -> reserve = json.getLongValue();
                    case "dateTime" -> time = json.getLongValue();
                    case "expires" -> expires = json.getLongValue();
                    case "seller" -> seller = json.getLongValue();
                    case "category" -> category = json.getLongValue();
                    case "extra" -> extra = json.getText();
                    default -> json.skipChildren();
                }
            }
            String rest = new Json().text("itemName", itemName).text("description", description)
                .number("initialBid", initialBid).number("reserve", reserve).number("auction_dateTime", time)
                .number("expires", expires).number("seller", seller).number("category", category)
                .text("auction_extra", extra).toString();
            return new Auction(id, seller, category, time, expires, rest);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The person in an event, or null. */
    static Person person(byte[] event) {
        try (JsonParser json = at(event, 0)) {
            if (json == null) return null;
            long id = 0, time = 0;
            String name = null, city = null, state = null;
            while (json.nextToken() == JsonToken.FIELD_NAME) {
                String field = json.currentName();
                json.nextToken();
                switch (field) {
                    case "id" -> id = json.getLongValue();
                    case "name" -> name = json.getText();
                    case "city" -> city = json.getText();
                    case "state" -> state = json.getText();
                    case "dateTime" -> time = json.getLongValue();
                    default -> json.skipChildren();
                }
            }
            return new Person(id, name, city, state, time);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A parser in the object of the event's kind, or null if the event is of another kind. */
    private static JsonParser at(byte[] event, int kind) throws IOException {
        JsonParser json = JSON.createParser(event);
        json.nextToken();
        json.nextToken();
        if (json.nextIntValue(-1) != kind) {
            json.close();
            return null;
        }
        json.nextToken();
        json.nextToken();
        return json;
    }
}
