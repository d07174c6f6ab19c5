"""Real JMS brokers other than Artemis for tests, and the table of what each does (`make brokers`)."""
