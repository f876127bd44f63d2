package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Broker contains the parameters of a connection to a broker.
type Broker struct {
	Host     string
	Port     int
	User     string // has all rights
	Password string
}

// rabbitmqProgram is where Debian installs the server. The program of this name in the PATH
// changes the user by itself.
const rabbitmqProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// The server of names is in the process group of the broker, so that it ends with the broker.
var rabbitmq = server{
	name: "rabbitmq", account: "rabbitmq", readyLine: "Server startup complete",
	prepare: func(s *server) error {
		for range 2 {
			port, err := freePort()
			if err != nil {
				return err
			}
			s.ports = append(s.ports, port)
		}
		config := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nlog.console = true\nlog.file = false\nloopback_users = none\ndisk_free_limit.absolute = 1MB\n", s.port)
		for name, text := range map[string]string{"plugins": "[].", "rabbitmq.conf": config} {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	},
	argv: func(s *server) []string {
		return []string{"/bin/sh", "-c", "epmd & exec " + rabbitmqProgram + " >&2 </dev/null"}
	},
	env: func(s *server) []string {
		in := func(name string) string { return filepath.Join(s.dir, name) }
		return []string{
			"ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_PORT=" + strconv.Itoa(s.ports[0]),
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput -kernel inet_dist_use_interface {127,0,0,1}",
			"RABBITMQ_NODENAME=" + s.nodeName(), "RABBITMQ_DIST_PORT=" + strconv.Itoa(s.ports[1]), "RABBITMQ_CONF_ENV_FILE=/dev/null",
			"RABBITMQ_MNESIA_BASE=" + in("mnesia"), "RABBITMQ_LOG_BASE=" + in("log"), "RABBITMQ_CONFIG_FILE=" + in("rabbitmq.conf"),
			"RABBITMQ_ENABLED_PLUGINS_FILE=" + in("plugins"), "RABBITMQ_ALLOW_INPUT=1",
			"RABBITMQ_DEFAULT_USER=tester", "RABBITMQ_DEFAULT_PASS=" + password,
		}
	},
}

// nodeName returns the name of the node of a RabbitMQ server.
func (s *server) nodeName() string { return "tester" + strconv.Itoa(s.port) + "@localhost" }

// StartRabbitMQ returns the real RabbitMQ that the tests of a package share. With -short it
// skips the test.
func StartRabbitMQ(t testing.TB) Broker {
	t.Helper()
	rabbitmq.ensureStarted(t, rabbitmqProgram, "epmd")
	return Broker{Host: "127.0.0.1", Port: rabbitmq.port, User: "tester", Password: password}
}

// KillRabbitMQ kills the server of StartRabbitMQ, as a power cut does. restart starts it again,
// on the same port.
func KillRabbitMQ(t testing.TB) (restart func()) {
	t.Helper()
	rabbitmq.kill()
	return func() {
		t.Helper()
		if err := rabbitmq.run(rabbitmq.argv(&rabbitmq)); err != nil {
			t.Fatalf("start RabbitMQ again: %v", err)
		}
	}
}
