package pulsar_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/testcert"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/pulsar"
)

// patience is how long a test waits for what should come.
const patience = 30 * time.Second

// queues returns the queues of a service.
func queues(name string) broker.Queues {
	topic := func(class string) protocol.Topic { return protocol.Topic{Class: class, Space: "tg", Name: name} }
	return broker.Queues{Service: name + "-service", Request: topic("request"), Response: topic("response")}
}

func TestKind_RejectsConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		config broker.Config
		want   string
	}{
		"no url":       {broker.Config{URL: "-"}, "write pulsar://HOST:PORT"},
		"other scheme": {broker.Config{URL: "http://a:1"}, "write pulsar://HOST:PORT"},
		"no port":      {broker.Config{URL: "pulsar://a"}, "write pulsar://HOST:PORT"},
		"no host":      {broker.Config{URL: "pulsar://a:1,:2"}, "write pulsar://HOST:PORT"},
		"credentials":  {broker.Config{URL: "pulsar://ann:secret@a:1"}, "in fields of their own"},
		"path":         {broker.Config{URL: "pulsar://a:1/b"}, "write pulsar://HOST:PORT"},
		"query":        {broker.Config{URL: "pulsar+ssl://a:1?b=secret"}, "write pulsar://HOST:PORT"},
		"embedded":     {broker.Config{Listen: "127.0.0.1:1"}, "never embedded"},
		"half a login": {broker.Config{User: "ann"}, "needs a password"},
		"setting":      {broker.Config{Settings: []byte(`{"a":1}`)}, "write an object with listener"},
		"half a pair":  {broker.Config{URL: "pulsar+ssl://a:1", TLS: broker.TLSFiles{Cert: "c"}}, "cert and key belong together"},
		"plain":        {broker.Config{TLS: broker.TLSFiles{CA: "c"}}, "begins with pulsar+ssl://"},
		"no file":      {broker.Config{URL: "pulsar+ssl://a:1", TLS: broker.TLSFiles{CA: "/missing"}}, "/missing cannot be read"},
		"no pair":      {broker.Config{URL: "pulsar+ssl://a:1", TLS: broker.TLSFiles{Cert: "/missing", Key: "/missing"}}, "/missing"},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config
			config.Name = "main"
			switch config.URL {
			case "":
				config.URL = "pulsar://a:1,b:2"
			case "-":
				config.URL = ""
			}
			_, err := pulsar.Kind().Connect(config)
			if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestKind_AcceptsConfigurations(t *testing.T) {
	dir := t.TempDir()
	files := broker.TLSFiles{CA: dir + "/cert.pem", Cert: dir + "/cert.pem", Key: dir + "/key.pem"}
	if _, err := testcert.Write(files.Cert, files.Key, 1); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]broker.Config{
		"anonymous":   {URL: "pulsar://a:1,b:2"},
		"token":       {URL: "pulsar://a:1", Password: "token"},
		"basic":       {URL: "pulsar+ssl://a:1", User: "ann", Password: "secret"},
		"certificate": {URL: "pulsar+ssl://a:1", TLS: files},
		"listener":    {URL: "pulsar://a:1", Settings: []byte(`{"listener": "outside"}`)},
	} {
		d, err := pulsar.Kind().Connect(c)
		if err == nil {
			err = d.Close()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// openIn opens a link within a time and returns the error.
func openIn(t *testing.T, d broker.Driver, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := d.Open(ctx, queues("x"), func(broker.Delivery) {})
	return err
}

// wantUnavailable fails unless a link cannot be opened, and unless the driver ends then.
func wantUnavailable(t *testing.T, c broker.Config, limit time.Duration) {
	t.Helper()
	c.Name = "main"
	d, err := pulsar.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := openIn(t, d, limit); !errors.Is(err, broker.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("open: %v, want ErrUnavailable", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// listen listens on a port where no broker answers. accepted receives the connections.
func listen(t *testing.T) (address string, accepted <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			conns <- conn
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), conns
}

func TestOpen_RefusedConnectionIsUnavailable(t *testing.T) {
	t.Parallel() // it waits
	wantUnavailable(t, broker.Config{URL: "pulsar://127.0.0.1:1", Password: "secret"}, patience)
}

// A server that accepts a connection and says nothing holds up a call no longer than its deadline.
func TestOpen_SilentServerIsUnavailable(t *testing.T) {
	t.Parallel() // it waits
	address, _ := listen(t)
	wantUnavailable(t, broker.Config{URL: "pulsar://" + address, Password: "secret"}, 20*time.Millisecond)
}

// The password is not sent to a server whose certificate is not trusted. What the client logs is
// a detail, without the headers of requests.
func TestOpen_UntrustedCertificateIsUnavailable(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	if _, err := testcert.Write(dir+"/cert.pem", dir+"/key.pem", 1); err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	address, accepted := listen(t)
	received := make(chan int, 100)
	go func() {
		for conn := range accepted {
			n, _ := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{own}}).Read(make([]byte, 1000))
			received <- n
		}
	}()
	var text buffer.SyncBuffer
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	wantUnavailable(t, broker.Config{URL: "pulsar+ssl://" + address, Password: "secret", Log: logger}, patience)
	if n := <-received; n != 0 {
		t.Errorf("the server received %d bytes", n)
	}
	if got := text.String(); !strings.Contains(got, "failed to verify certificate") || strings.Contains(got, "level=WARN") || strings.Contains(got, "level=ERROR") || strings.Contains(got, "secret") {
		t.Errorf("the log is\n%s\nwant the reason as a detail", got)
	}
}

// A driver that ends leaves no goroutine, also while a link is being opened.
func TestClose_EndsWhatOpenBegan(t *testing.T) {
	before := runtime.NumGoroutine()
	address, accepted := listen(t)
	d, err := pulsar.Connect(broker.Config{Name: "main", URL: "pulsar://" + address})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() { opened <- openIn(t, d, patience) }()
	conn := <-accepted
	_ = conn.Close() // the client tries again until its limit
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-opened; !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("open: %v, want ErrUnavailable", err)
	}
	if err := openIn(t, d, patience); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("open with a closed driver: %v, want ErrUnavailable", err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); runtime.NumGoroutine() > before+1; { // listen has one
		select {
		case <-tick.C:
		case <-end:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines remain:\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
