#!/bin/sh
# Fetches the broker of Pulsar with Maven (200 MB) and compiles the classes in src, which stand
# in for its module for metrics. The class path and the classes are in .build then. It needs a JDK
# of version 17 or later.
set -eu
cd "$(dirname "$0")"
rm -rf .build
mkdir .build
mvn --quiet --batch-mode dependency:build-classpath -Dmdep.outputFile="$PWD/.build/classpath" >&2
javac -nowarn -cp "$(cat .build/classpath)" -d .build/classes src/org/apache/pulsar/opentelemetry/*.java
touch .build/ready
