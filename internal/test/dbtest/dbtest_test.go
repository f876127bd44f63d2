package dbtest_test

import (
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/rolecall/rolecall/internal/test/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }

func TestServers_CreateSeparateDatabases(t *testing.T) {
	for name, start := range map[string]func(testing.TB) dbtest.Database{"postgres": dbtest.NewPostgres, "mariadb": dbtest.NewMariaDB} {
		t.Run(name, func(t *testing.T) {
			one, other := start(t), start(t)
			if one.Name == other.Name || one.Port != other.Port {
				t.Errorf("got %+v and %+v, want two databases of one server", one, other)
			}
			conn, err := net.Dial("tcp", net.JoinHostPort(one.Host, strconv.Itoa(one.Port)))
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

func TestRabbitMQ_AcceptsConnectionsAlsoAfterItWasKilled(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	address := net.JoinHostPort(b.Host, strconv.Itoa(b.Port))
	restart := dbtest.KillRabbitMQ(t)
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("a killed server accepts connections")
	}
	restart()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
