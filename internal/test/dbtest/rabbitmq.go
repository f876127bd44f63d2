package dbtest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
)

// Broker contains the parameters of a connection to a broker.
type Broker struct {
	Host     string
	Port     int
	TLSPort  int
	User     string // has all rights; "" with a token
	Password string // or token
	CA       string // path of the certificate of the broker, in PEM, which is its own issuer
	Key      string // path of its key
}

// rabbitmqProgram is where Debian installs the server. The program of this name in the PATH
// changes the user by itself.
const rabbitmqProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// The server of names is in the process group of the broker, so that it ends with the broker.
var rabbitmq = server{
	name: "rabbitmq", account: "rabbitmq", readyLine: "Server startup complete",
	prepare: func(s *server) error {
		if err := errors.Join(s.addPorts(3), s.writeCertificate()); err != nil {
			return err
		}
		in := func(name string) string { return filepath.Join(s.dir, name) }
		config := fmt.Sprintf("listeners.tcp.1 = 127.0.0.1:%d\nlisteners.ssl.1 = 127.0.0.1:%d\n"+
			"ssl_options.cacertfile = %s\nssl_options.certfile = %[3]s\nssl_options.keyfile = %s\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n"+
			"log.console = true\nlog.file = false\nloopback_users = none\ndisk_free_limit.absolute = 1MB\n",
			s.port, s.ports[2], in(certFile), in(keyFile))
		return s.writeFiles(map[string]string{"plugins": "[].", "rabbitmq.conf": config})
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

// StartRabbitMQ returns the real RabbitMQ that the tests of a package share. With TLS it lets in clients
// that have its certificate. With -short it skips the test.
func StartRabbitMQ(t testing.TB) Broker {
	t.Helper()
	rabbitmq.ensureStarted(t, rabbitmqProgram, "epmd")
	return Broker{
		Host: "127.0.0.1", Port: rabbitmq.port, TLSPort: rabbitmq.ports[2], User: "tester", Password: password,
		CA: filepath.Join(rabbitmq.dir, certFile), Key: filepath.Join(rabbitmq.dir, keyFile),
	}
}

// ControlRabbitMQ runs rabbitmqctl for the server of StartRabbitMQ.
func ControlRabbitMQ(t testing.TB, args ...string) {
	t.Helper()
	if err := rabbitmq.runProgram(append([]string{"/usr/lib/rabbitmq/bin/rabbitmqctl"}, args...)...); err != nil {
		t.Fatal(err)
	}
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
