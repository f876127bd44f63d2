package org.apache.pulsar.opentelemetry;

import io.opentelemetry.api.OpenTelemetry;
import java.util.function.Consumer;

/** Collects no metrics. */
public class OpenTelemetryService implements AutoCloseable {
    public static OpenTelemetryServiceBuilder builder() {
        return new OpenTelemetryServiceBuilder();
    }

    public OpenTelemetry getOpenTelemetry() {
        return OpenTelemetry.noop();
    }

    @Override
    public void close() {}

    public static class OpenTelemetryServiceBuilder {
        public OpenTelemetryServiceBuilder clusterName(String name) {
            return this;
        }

        public OpenTelemetryServiceBuilder serviceName(String name) {
            return this;
        }

        public OpenTelemetryServiceBuilder serviceVersion(String version) {
            return this;
        }

        public OpenTelemetryServiceBuilder builderCustomizer(Consumer<?> customizer) {
            return this;
        }

        public OpenTelemetryService build() {
            return new OpenTelemetryService();
        }
    }
}
