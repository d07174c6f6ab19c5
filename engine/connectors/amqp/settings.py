"""Settings of AMQP 1.0 sources and sinks, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass

from engine.connectors.amqp.sasl import MechanismChoice
from engine.connectors.amqp.transformer_settings import Transformers, used_by
from engine.connectors.jms import JmsConfig, JmsSinkConfig, JmsSourceConfig
from routes.keys.addresses import url
from routes.keys.table import key, part
from routes.keys.token_login import TokenLogin
from routes.keys.values import FLAG, choice, duration, whole
from routes.systems import Scheme, SourceConfig

__all__ = ["SCHEMES", "AmqpConfig", "AmqpSinkConfig", "AmqpSourceConfig"]

SCHEMES = (Scheme("amqp", 5672), Scheme("amqps", 5671, is_tls=True))


@dataclass(frozen=True, kw_only=True)
class AmqpConfig(JmsConfig):
    """Settings of a connection to an AMQP broker, or of a listener that clients connect to."""

    mechanism: MechanismChoice = key(
        "mechanism",
        choice(MechanismChoice, any_case=True),
        "SASL mechanism of the login. `auto`: the strongest that the broker offers; with access tokens OAUTHBEARER, "
        "XOAUTH2, or PLAIN with the token as the password, as RabbitMQ takes it.",
        default="auto",
    )
    tokens: TokenLogin = part(TokenLogin, TokenLogin())
    """Login by access tokens of an OpenID Connect server."""
    listen: str | None = key(
        "listen",
        url({scheme.name: scheme.port for scheme in SCHEMES}),
        "URL at which the bridge itself listens for clients; in place of `url`.",
        example="amqp://127.0.0.1:5673",
    )
    """URL on which the bridge itself listens for clients, in place of connecting to a broker."""
    max_clients: int = key(
        "max-clients", whole(1, 10000), "Greatest number of client connections at a time, with `listen`.", default="500"
    )
    """Listener: greatest number of connections at a time."""
    transaction_timeout_seconds: float = key(
        "transaction-timeout",
        duration("1s", "1h"),
        "Time that a client's transaction may take from its first message before it is rolled back, with `listen`.",
        default="2m",
    )
    """Listener: greatest time from the first message of a client's transaction to its end."""

    @property
    def key(self) -> str:
        """Beginning of the keys of the source or sink, with the dot at its end."""
        return f"{'source' if isinstance(self, SourceConfig) else 'sink'}.{self.name}."


@dataclass(frozen=True, kw_only=True)
class AmqpSourceConfig(AmqpConfig, JmsSourceConfig):
    """Settings of an AMQP source."""

    sole_connection: bool = key(
        "sole-connection",
        FLAG,
        "`true`: the broker refuses a second connection of this source. After a takeover the standby then waits "
        "until the broker has closed the old leader's connection, so that the order of messages is kept even if that "
        "leader was frozen. For one worker, and brokers that support it, such as Artemis.",
        default="false",
    )
    """True if a connection asks the broker to be the only one with its container id."""
    transformers: Transformers = used_by("source", "JMS messages of AMQP messages")
    """Transformers of AMQP messages to JMS messages."""


@dataclass(frozen=True, kw_only=True)
class AmqpSinkConfig(AmqpConfig, JmsSinkConfig):
    """Settings of an AMQP sink."""

    transformers: Transformers = used_by("sink", "AMQP messages of JMS messages")
    """Transformers of JMS messages to AMQP messages."""
