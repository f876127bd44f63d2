// Package interop calls tool services of TrustGraph, and lets TrustGraph call tool services of
// this module, through a real RabbitMQ. TrustGraph's packages are those of the Python index,
// unchanged. make test-interop runs the tests.
package interop
