package natsbroker_test

import (
	"crypto/rand"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/broker/brokertest"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// serve receives requests at a server, in the queue group of the service.
func serve(t testing.TB, url string, options []nats.Option, q broker.Queues, answer func(broker.Message, func(broker.Message))) func() {
	t.Helper()
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.QueueSubscribe(q.Request.Subject(), q.Service, func(m *nats.Msg) {
		answer(broker.Message{ID: m.Header.Get(protocol.HeaderID), Token: m.Header.Get(protocol.HeaderToken), Body: m.Data}, func(r broker.Message) {
			if err := m.RespondMsg(&nats.Msg{Header: nats.Header{protocol.HeaderID: {r.ID}}, Data: r.Body}); err != nil {
				t.Errorf("respond: %v", err)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn.Close
}

// password is the password of all services in these tests.
const password = "the password of the service"

// accounts lets a service of any id in, with the queues of the test that runs.
type accounts struct {
	mu     sync.Mutex
	queues broker.Queues
}

func (a *accounts) FindAccount(service, given string) (broker.Queues, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queues, service == a.queues.Service && given == password
}

// connectEmbedded returns a driver with an embedded server on a free port, and its address.
func connectEmbedded(t testing.TB, a broker.Accounts) (broker.Driver, string) {
	t.Helper()
	d, err := natsbroker.Connect(broker.Config{Name: "main", Listen: "127.0.0.1:0", Accounts: a})
	if err != nil {
		t.Fatal(err)
	}
	return d, "nats://" + d.(broker.Embedded).Address()
}

func TestDriver_Embedded(t *testing.T)      { brokertest.TestDriver(t, embeddedTarget()) }
func BenchmarkDriver_Embedded(b *testing.B) { brokertest.BenchmarkDriver(b, embeddedTarget()) }

// embeddedTarget returns a driver with an embedded server.
func embeddedTarget() brokertest.Target {
	a, url := &accounts{}, ""
	return brokertest.Target{
		ReportsNoService: true,
		Connect: func(t testing.TB) broker.Driver {
			d, address := connectEmbedded(t, a)
			url = address
			return d
		},
		Serve: func(t testing.TB, q broker.Queues, answer func(broker.Message, func(broker.Message))) func() {
			a.mu.Lock()
			a.queues = q
			a.mu.Unlock()
			return serve(t, url, []nats.Option{nats.UserInfo(q.Service, password)}, q, answer)
		},
	}
}

// startServer starts a server of its own, as an external one.
func startServer(t testing.TB) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s.ClientURL()
}

func TestDriver_External(t *testing.T)      { brokertest.TestDriver(t, externalTarget(t)) }
func BenchmarkDriver_External(b *testing.B) { brokertest.BenchmarkDriver(b, externalTarget(b)) }

// externalTarget returns a driver with a server of its own.
func externalTarget(t testing.TB) brokertest.Target {
	url := startServer(t)
	return brokertest.Target{
		ReportsNoService: true,
		Connect: func(t testing.TB) broker.Driver {
			d, err := natsbroker.Connect(broker.Config{Name: "main", URL: url})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Serve: func(t testing.TB, q broker.Queues, answer func(broker.Message, func(broker.Message))) func() {
			return serve(t, url, nil, q, answer)
		},
	}
}

func TestEmbedded_ServiceReadsItsOwnQueueOnly(t *testing.T) {
	topic := func(name string) protocol.Topic { return protocol.Topic{Class: "request", Space: "tg", Name: name} }
	a := &accounts{queues: broker.Queues{Service: "joke", Request: topic("joke")}}
	d, url := connectEmbedded(t, a)
	defer d.Close()
	errs := make(chan error, 10)
	conn, err := nats.Connect(url, nats.UserInfo("joke", password), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, subject := range []string{"tg.request.other", "tg.request.*", ">", "_INBOX.>", "$SYS.>", "tg.request.joke.more"} {
		if _, err := conn.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, conn, errs, subject)
	}
	if _, err := conn.QueueSubscribeSync("tg.request.joke", "another-group"); err != nil {
		t.Fatal(err)
	}
	wantViolation(t, conn, errs, "another queue group")
	for _, subject := range []string{"tg.request.joke", "tg.response.joke", "_INBOX.abc.def", "_INBOX.b3RoZXI.abc.def", "_INBOX.joke.abc.def", "$SYS.REQ.SERVER.PING", "rolecall.announce.other", "rolecall.announce.joke.more", "rolecall.announce"} {
		if err := conn.Publish(subject, []byte("forged")); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, conn, errs, "publish to "+subject)
	}
}

// wantViolation fails unless the server reports a violation of permissions.
func wantViolation(t *testing.T, conn *nats.Conn, errs <-chan error, what string) {
	t.Helper()
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-errs:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v, want a violation of permissions", what, err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s: the server allows it", what)
	}
}

func TestEmbedded_RejectsOthers(t *testing.T) {
	a := &accounts{queues: broker.Queues{Service: "joke"}}
	d, url := connectEmbedded(t, a)
	defer d.Close()
	for _, c := range []struct{ user, password string }{{"", ""}, {"joke", "wrong"}, {"other", password}, {"*runtime", ""}, {"*runtime", password}, {"joke", ""}} {
		conn, err := nats.Connect(url, nats.UserInfo(c.user, c.password))
		if err == nil {
			conn.Close()
			t.Errorf("%q with password %q is let in", c.user, c.password)
		}
	}
}

func TestEmbedded_OpensNoPortUnlessAsked(t *testing.T) {
	d, err := natsbroker.Connect(broker.Config{Name: "main"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if address := d.(broker.Embedded).Address(); address != "" {
		t.Errorf("it listens on %s", address)
	}
}

// A port that another process uses is reported at once: a reload waits for it.
func TestConnect_PortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	_, err = natsbroker.Connect(broker.Config{Name: "main", Listen: l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "is another process using the port?") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestKind_RejectsConfigurations(t *testing.T) {
	for want, c := range map[string]broker.Config{
		"tls: cert and key belong together": {URL: "tls://a:1", TLS: broker.TLSFiles{Cert: "c"}},
		"leave out listen or url":           {URL: "nats://a:1", Listen: "127.0.0.1:1"},
		"without a url the server is":       {User: "ann"},
		"opens no port without listen":      {TLS: broker.TLSFiles{Cert: "c", Key: "k"}},
		"passwords would be sent as plain":  {Listen: "0.0.0.0:4222"},
		"plain text; set tls":               {Listen: ":4222"},
		"write nats://HOST:PORT":            {URL: "http://a:1"},
		"in fields of their own":            {URL: "nats://ann:secret@a:1"},
		"a broker of type nats has none":    {Settings: []byte(`{"a":1}`)},
	} {
		c.Name = "main"
		if err := natsbroker.Kind().Check(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A server that remembers each request until its answer is no longer allowed fills the memory.
func TestEmbedded_KeepsNothingOfAnsweredRequests(t *testing.T) {
	const count, most = 20_000, 50 // bytes for each
	topic := protocol.Topic{Class: "request", Space: "tg", Name: "joke"}
	a := &accounts{queues: broker.Queues{Service: "joke", Request: topic}}
	d, url := connectEmbedded(t, a)
	defer d.Close()
	answered := make(chan bool, count)
	l, err := d.Open(t.Context(), a.queues, func(broker.Delivery) { answered <- true })
	if err != nil {
		t.Fatal(err)
	}
	serve(t, url, []nats.Option{nats.UserInfo("joke", password)}, a.queues, func(m broker.Message, respond func(broker.Message)) { respond(m) })
	send := func(n int) uint64 {
		for range n {
			if _, err := l.Send(t.Context(), broker.Message{ID: rand.Text(), Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			<-answered
		}
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	// What is kept of requests grows with each round. Buffers grow in some.
	before, grown := send(count), int64(0)
	for range 4 {
		after := send(count)
		if grown = (int64(after) - int64(before)) / count; grown <= most {
			return
		}
		before = after
	}
	t.Errorf("the heap grew by %d bytes for each request, want %d at most", grown, most)
}
