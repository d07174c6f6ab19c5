package jmsbridge.bench;

/** The two values of a body by which the peer routes, and the body that leaves. One pass over the body finds both. */
abstract class BodyFields {
    String kind;
    String region;

    /** Reads a body; without the values if it has none, and no further than needed if no route takes it. */
    abstract void read(byte[] body);

    /** What leaves in place of the body that was read last. */
    byte[] changed(byte[] body) {
        return body;
    }

    /** Whether both values are known and no route takes them. */
    final boolean isUnrouted() {
        return kind != null && region != null && Router.route(kind, region) < 0;
    }
}
