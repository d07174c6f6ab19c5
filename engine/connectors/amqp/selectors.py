"""Filter translation: rewrites selectors with Apache Qpid's names of AMQP fields into JMS names."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["FIELDS", "translated_selector"]

FIELDS: Mapping[str, str] = {
    "amqp.durable": "JMSDeliveryMode",
    "amqp.delivery_mode": "JMSDeliveryMode",
    "amqp.priority": "JMSPriority",
    "amqp.ttl": "JMSExpiration",
    "amqp.first_acquirer": "JMS_AMQP_FirstAcquirer",
    "amqp.delivery_count": "JMSXDeliveryCount",
    "amqp.redelivered": "JMSRedelivered",
    "amqp.message_id": "JMSMessageID",
    "amqp.user_id": "JMSXUserID",
    "amqp.to": "JMSDestination",
    "amqp.subject": "JMS_AMQP_Subject",
    "amqp.reply_to": "JMSReplyTo",
    "amqp.correlation_id": "JMSCorrelationID",
    "amqp.content_type": "JMS_AMQP_ContentType",
    "amqp.content_encoding": "JMS_AMQP_ContentEncoding",
    "amqp.absolute_expiry_time": "JMSExpiration",
    "amqp.creation_time": "JMSTimestamp",
    "amqp.group_id": "JMSXGroupID",
    "amqp.group_sequence": "JMSXGroupSeq",
    "amqp.reply_to_group_id": "JMS_AMQP_ReplyToGroupID",
    "amqp.annotation": "JMSType",
    "amqp.jms_type": "JMSType",
}
"""JMS names by the name that Apache Qpid gives each AMQP field, as the default transformer maps the fields.

Qpid's brokers also know `delivery_mode`, `redelivered` and `jms_type`, and its JMS client `annotation`.
"""

_TOKEN = re.compile(
    r"'(?:[^']|'')*'?|\"[^\"]*\"?|(?P<durable>amqp\.durable)\s*(?P<operator>=|<>)\s*(?P<flag>true|false)\b"
    r"|(?P<name>(?:[^\W\d]|\$)[\w$]*(?:\.[\w$]+)*)",
    re.IGNORECASE,
)


def translated_selector(selector: str) -> str:
    """Selector with the JMS names of AMQP fields: `amqp.priority = 4` becomes `JMSPriority = 4`.

    JMS has a text where AMQP has a flag, so `amqp.durable = TRUE` becomes `JMSDeliveryMode = 'PERSISTENT'`. Everything
    else stays as it is, also names in literals.
    """
    return _TOKEN.sub(_translated, selector)


def _translated(token: re.Match[str]) -> str:
    if token["durable"]:
        mode = "PERSISTENT" if token["flag"].lower() == "true" else "NON_PERSISTENT"
        return f"JMSDeliveryMode {token['operator']} '{mode}'"
    return FIELDS.get(token["name"] or "", token[0])
