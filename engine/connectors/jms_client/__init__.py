"""JMS by a provider's own client jars: source and sink for every broker with a client for javax.jms or jakarta.jms."""
