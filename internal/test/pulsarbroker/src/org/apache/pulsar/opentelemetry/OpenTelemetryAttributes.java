package org.apache.pulsar.opentelemetry;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;

/** The labels of metrics that the broker names. The metrics are not collected. */
public interface OpenTelemetryAttributes {
    AttributeKey<String> PULSAR_DOMAIN = AttributeKey.stringKey("domain");
    AttributeKey<String> PULSAR_TENANT = AttributeKey.stringKey("tenant");
    AttributeKey<String> PULSAR_NAMESPACE = AttributeKey.stringKey("namespace");
    AttributeKey<String> PULSAR_TOPIC = AttributeKey.stringKey("topic");
    AttributeKey<Long> PULSAR_PARTITION_INDEX = AttributeKey.longKey("partition");
    AttributeKey<String> PULSAR_SUBSCRIPTION_NAME = AttributeKey.stringKey("subscription");
    AttributeKey<String> PULSAR_SUBSCRIPTION_TYPE = AttributeKey.stringKey("subscriptionType");
    AttributeKey<String> PULSAR_CONSUMER_NAME = AttributeKey.stringKey("consumer");
    AttributeKey<Long> PULSAR_CONSUMER_ID = AttributeKey.longKey("consumerId");

    enum BacklogQuotaType {
        SIZE, TIME;
        public final Attributes attributes = Attributes.empty();
    }

    enum TransactionStatus {
        ACTIVE, COMMITTED, ABORTED;
        public final Attributes attributes = Attributes.empty();
    }

    enum CompactionStatus {
        SUCCESS, FAILURE;
        public final Attributes attributes = Attributes.empty();
    }
}
