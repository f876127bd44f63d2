package rabbitmq_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/rabbitmq"
)

func TestKind_RejectsConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		config broker.Config
		want   string
	}{
		"settings":     {broker.Config{Settings: []byte(`{"a":1}`)}, "a broker of type rabbitmq has none"},
		"embedded":     {broker.Config{Listen: "127.0.0.1:1"}, "never embedded"},
		"no url":       {broker.Config{URL: "-"}, "write amqp://HOST:PORT/VHOST"},
		"other scheme": {broker.Config{URL: "http://a:1"}, "write amqp://HOST:PORT/VHOST"},
		"no host":      {broker.Config{URL: "amqp://"}, "write amqp://HOST:PORT/VHOST"},
		"credentials":  {broker.Config{URL: "amqp://ann:secret@a:1"}, "in fields of their own"},
		"query":        {broker.Config{URL: "amqps://a:1?verify=secret"}, "write amqp://HOST:PORT/VHOST"},
		"no user":      {broker.Config{User: "-"}, "user and password are required"},
		"no password":  {broker.Config{Password: "-"}, "user and password are required"},
		"half a pair":  {broker.Config{URL: "amqps://a:1", TLS: broker.TLSFiles{Cert: "c"}}, "cert and key belong together"},
		"plain":        {broker.Config{TLS: broker.TLSFiles{CA: "c"}}, "begins with amqps://"},
		"no file":      {broker.Config{URL: "amqps://a:1", TLS: broker.TLSFiles{CA: "/missing"}}, "/missing cannot be read"},
		"no pair":      {broker.Config{URL: "amqps://a:1", TLS: broker.TLSFiles{Cert: "/missing", Key: "/missing"}}, "/missing"},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config
			config.Name = "main"
			for field, usual := range map[*string]string{&config.URL: "amqp://a:1/host", &config.User: "ann", &config.Password: "secret"} {
				switch *field {
				case "":
					*field = usual
				case "-":
					*field = ""
				}
			}
			_, err := rabbitmq.Kind().Connect(config)
			if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// offline returns a driver for an address where no broker answers.
func offline(t *testing.T, l net.Listener) broker.Driver {
	t.Helper()
	d, err := rabbitmq.Connect(broker.Config{Name: "main", URL: "amqp://" + l.Addr().String(), User: "ann", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return d
}

// Many calls while the broker is away do not dial once each.
func TestOpen_WithoutBrokerFailsAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := offline(t, l)
	dialed := make(chan bool, 1000)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(dialed)
				return
			}
			dialed <- true
			_ = conn.Close()
		}
	}()
	for range 1000 {
		if _, err := d.Open(t.Context(), queues("x"), func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
			t.Fatalf("open: %v, want ErrUnavailable", err)
		}
	}
	if err := errors.Join(d.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	attempts := 0
	for range dialed {
		attempts++
	}
	if attempts == 0 || attempts > 20 {
		t.Errorf("%d attempts to connect for 1000 calls", attempts)
	}
}

// A server that accepts a connection and says nothing holds up neither a call nor Close.
func TestOpen_SilentServerIsUnavailable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := offline(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Open(ctx, queues("x"), func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("open: %v, want ErrUnavailable", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
