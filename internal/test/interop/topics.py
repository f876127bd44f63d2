"""Lets TrustGraph's RabbitMQ backend read topics such as non-persistent://tg/request/joke.

The base class of its tool services writes this form and no other, and the backend reads only
request:tg:joke. Without this, no tool service of TrustGraph starts on RabbitMQ.
"""

import sys

try:
    from trustgraph.base.async_rabbitmq_backend import AsyncRabbitMQBackend as Backend
except ImportError:  # before 2.8
    from trustgraph.base.rabbitmq_backend import RabbitMQBackend as Backend

parse_topic = Backend._parse_topic


def parse_either(self, topic):
    if "://" in topic:
        space, topic_class, name = topic.split("://", 1)[1].split("/")
        topic = f"{topic_class}:{space}:{name}"
    return parse_topic(self, topic)


if "--without-topics" in sys.argv:
    sys.argv.remove("--without-topics")
else:
    Backend._parse_topic = parse_either
