//go:build pulsar

package pulsar_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/tcpproxy"
	"github.com/rolecall/rolecall/internal/test/testcert"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/broker/brokertest"
	"github.com/rolecall/rolecall/modules/toolservice/pulsar"
)

// quiet returns a logger for a client of Pulsar that drops everything.
func quiet() log.Logger { return log.NewLoggerWithSlog(slog.New(slog.DiscardHandler)) }

func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }

// startBroker returns the real broker that the tests share.
func startBroker(t testing.TB) dbtest.Broker {
	t.Helper()
	return dbtest.StartPulsar(t, "../../../internal/test/pulsarbroker/.build")
}

// address returns the URL of the broker.
func address(b dbtest.Broker) string {
	return "pulsar://" + net.JoinHostPort(b.Host, strconv.Itoa(b.Port))
}

// connect returns a driver, which the test closes.
func connect(t testing.TB, b dbtest.Broker) broker.Driver {
	t.Helper()
	return connectWith(t, broker.Config{Name: "main", URL: address(b), Password: b.Password})
}

func connectWith(t testing.TB, c broker.Config) broker.Driver {
	t.Helper()
	d, err := pulsar.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// dial connects as a service does.
func dial(t testing.TB, b dbtest.Broker) client.Client {
	t.Helper()
	c, err := client.NewClient(client.ClientOptions{URL: address(b), Authentication: client.NewAuthenticationToken(b.Password), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// subscribe receives the requests of a service as the one of TrustGraph does: all processes with
// its id share a subscription.
func subscribe(t testing.TB, c client.Client, q broker.Queues) client.Consumer {
	t.Helper()
	requests, err := c.Subscribe(client.ConsumerOptions{Topic: q.Request.URL(), SubscriptionName: q.Service + "-request", Type: client.Shared, AckGroupingOptions: &client.AckGroupingOptions{MaxSize: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// serve answers requests until the test ends or stop is called.
func serve(t testing.TB, b dbtest.Broker, q broker.Queues, answer func(broker.Message, func(broker.Message))) (stop func()) {
	t.Helper()
	c := dial(t, b)
	requests := subscribe(t, c, q)
	responses, err := c.CreateProducer(client.ProducerOptions{Topic: q.Response.URL()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := requests.Receive(ctx)
			if err != nil {
				return
			}
			answer(broker.Message{ID: r.Properties()["id"], Token: r.Properties()["rolecall-token"], Body: r.Payload()}, func(m broker.Message) {
				if _, err := responses.Send(ctx, &client.ProducerMessage{Payload: m.Body, Properties: map[string]string{"id": m.ID}}); err != nil && ctx.Err() == nil {
					t.Errorf("respond: %v", err)
				}
			})
			_ = requests.Ack(r) // its connection may be lost
		}
	}()
	stop = func() { cancel(); <-done; requests.Close(); responses.Close() }
	t.Cleanup(stop)
	return stop
}

// echo responds with the body of the request.
func echo(m broker.Message, respond func(broker.Message)) {
	respond(broker.Message{ID: m.ID, Body: m.Body})
}

func TestDriver(t *testing.T)      { brokertest.TestDriver(t, target(t)) }
func BenchmarkDriver(b *testing.B) { brokertest.BenchmarkDriver(b, target(b)) }

// target returns a driver with the real broker.
func target(t testing.TB) brokertest.Target {
	b := startBroker(t)
	return brokertest.Target{
		Connect: func(t testing.TB) broker.Driver { return connect(t, b) },
		Serve: func(t testing.TB, q broker.Queues, answer func(broker.Message, func(broker.Message))) func() {
			return serve(t, b, q, answer)
		},
	}
}

// open opens a link, which ends with the test. Its deliveries are sent to the channel. A broker that
// has just started needs longer for its first persistent topic than the driver waits.
func open(t *testing.T, d broker.Driver, q broker.Queues) (broker.Link, <-chan broker.Delivery) {
	t.Helper()
	deliveries := make(chan broker.Delivery, 1_000_000)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := d.Open(ctx, q, func(d broker.Delivery) { deliveries <- d })
	for errors.Is(err, broker.ErrUnavailable) && ctx.Err() == nil {
		l, err = d.Open(ctx, q, func(d broker.Delivery) { deliveries <- d })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), d.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l, deliveries
}

// receive returns the next value of a channel.
func receive[T any](t *testing.T, values <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s arrived", what)
	}
	panic("not reached")
}

// wantNotice fails unless the next delivery says that responses may be lost.
func wantNotice(t *testing.T, deliveries <-chan broker.Delivery) {
	t.Helper()
	if d := receive(t, deliveries, "notice"); d.ID != "" || !errors.Is(d.Err, broker.ErrUnavailable) {
		t.Errorf("received %q, %v, want ErrUnavailable", d.ID, d.Err)
	}
}

// awaitReconnect sends requests until one is answered.
func awaitReconnect(t *testing.T, l broker.Link, deliveries <-chan broker.Delivery) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * patience); ; {
		select {
		case d := <-deliveries:
			if d.Err == nil && strings.HasPrefix(d.ID, "again") {
				return
			}
		case now := <-tick.C:
			if sent, err := l.Send(t.Context(), broker.Message{ID: fmt.Sprint("again ", now.UnixNano())}); err != nil && (sent || !errors.Is(err, broker.ErrUnavailable)) {
				t.Logf("sent %t, %v", sent, err)
			}
		case <-end:
			t.Fatal("the link did not connect again")
		}
	}
}

func TestSend_WritesWhatTrustGraphWrites(t *testing.T) {
	b := startBroker(t)
	q := queues("bytes")
	requests := subscribe(t, dial(t, b), q)
	l, _ := open(t, connect(t, b), q)
	if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1", Token: "token", Body: []byte("{}")}); !sent || err != nil {
		t.Fatalf("sent %t, %v", sent, err)
	}
	r := receive(t, requests.Chan(), "request")
	if got, want := fmt.Sprintf("%s %q %q %v", r.Message.Topic(), r.Key(), r.Payload(), r.Properties()), `non-persistent://tg/request/bytes "" "{}" map[id:id-1 rolecall-token:token]`; got != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
}

// A persistent topic works, too, and its responses are acknowledged.
func TestLink_LeavesNothingBehind(t *testing.T) {
	b := startBroker(t)
	for _, class := range []string{"response", "flow"} {
		q := queues("left" + class)
		q.Response.Class = class
		d := connect(t, b)
		l, deliveries := open(t, d, q)
		stop := serve(t, b, q, echo)
		if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1"}); !sent || err != nil {
			t.Errorf("sent %t, %v", sent, err)
		}
		if r := receive(t, deliveries, "response"); r.ID != "id-1" || r.Err != nil {
			t.Errorf("received %q, %v", r.ID, r.Err)
		}
		path := strings.Replace(q.Response.URL(), "://", "/", 1)
		if got := subscriptions(t, path); got != 1 {
			t.Errorf("%s has %d subscriptions of an open link", path, got)
		}
		stop()
		if err := errors.Join(l.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		if got := subscriptions(t, path); got != 0 {
			t.Errorf("%s has %d subscriptions of a closed link", path, got)
		}
	}
}

// subscriptions returns how many subscriptions a topic has.
func subscriptions(t *testing.T, path string) int {
	t.Helper()
	var stats struct {
		Subscriptions map[string]any `json:"subscriptions"`
	}
	if err := json.Unmarshal([]byte(dbtest.AskPulsar(t, http.MethodGet, path+"/stats", "")), &stats); err != nil {
		t.Fatal(err)
	}
	return len(stats.Subscriptions)
}

// Killed is as a power cut: the broker says nothing.
func TestLink_SurvivesKilledBroker(t *testing.T) {
	b := startBroker(t)
	q := queues("killed")
	d := connect(t, b)
	l, deliveries := open(t, d, q)
	awaitReconnectWith := serve(t, b, q, echo)
	awaitReconnect(t, l, deliveries)
	awaitReconnectWith()
	restart := dbtest.KillPulsar(t)
	for d := receive(t, deliveries, "notice"); d.Err == nil; d = receive(t, deliveries, "notice") {
		continue // responses of before
	}
	if sent, err := l.Send(t.Context(), broker.Message{ID: "lost"}); sent || !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("without a broker: sent %t, %v; want ErrUnavailable", sent, err)
	}
	restart()
	serve(t, b, q, echo)
	awaitReconnect(t, l, deliveries)
}

// proxied returns a driver whose connections pass a proxy.
func proxied(t *testing.T, b dbtest.Broker) (broker.Driver, *tcpproxy.Proxy) {
	t.Helper()
	p := tcpproxy.At(t, dbtest.PulsarProxy(), net.JoinHostPort(b.Host, strconv.Itoa(b.Port)))
	return connectWith(t, broker.Config{
		Name: "main", URL: "pulsar://" + p.Address(), Password: b.Password, Settings: []byte(`{"listener": "` + dbtest.ProxiedListener + `"}`),
	}), p
}

// The client panics when it is given a request while it closes.
func TestSend_DuringLostConnections(t *testing.T) {
	b := startBroker(t)
	q := queues("flood")
	d, p := proxied(t, b)
	l, deliveries := open(t, d, q)
	serve(t, b, q, echo)
	ctx, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for ctx.Err() == nil {
				_, _ = l.Send(ctx, broker.Message{ID: "flood"})
			}
		})
	}
	for range 5 {
		awaitReconnect(t, l, deliveries)
		p.Cut()
	}
	stop()
	senders.Wait()
}

func TestLink_SurvivesLostConnections(t *testing.T) {
	b := startBroker(t)
	q := queues("cut")
	d, p := proxied(t, b)
	l, deliveries := open(t, d, q)
	serve(t, b, q, echo)
	for range 3 {
		p.Cut()
		wantNotice(t, deliveries)
		awaitReconnect(t, l, deliveries)
		for len(deliveries) > 0 {
			<-deliveries // of other attempts
		}
	}
}

// A request whose connection is lost before the broker has confirmed it is not sent again: the
// service would act twice.
func TestSend_LostRequestIsNotRepeated(t *testing.T) {
	b := startBroker(t)
	q := queues("once")
	d, p := proxied(t, b)
	l, deliveries := open(t, d, q)
	received := make(chan string, 10_000)
	serve(t, b, q, func(m broker.Message, respond func(broker.Message)) {
		received <- m.ID
		respond(broker.Message{ID: m.ID})
	})
	release := p.Hold(t)
	ended := make(chan error, 1)
	go func() {
		sent, err := l.Send(t.Context(), broker.Message{ID: "lost"})
		if !sent {
			err = errors.Join(err, errors.New("sent is false"))
		}
		ended <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if sent, err := l.Send(ctx, broker.Message{ID: "late"}); !sent || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sent %t, %v; want the error of the deadline", sent, err)
	}
	p.Cut()
	release()
	if err := receive(t, ended, "outcome"); !errors.Is(err, broker.ErrUnavailable) || strings.Contains(err.Error(), "sent is false") {
		t.Errorf("the request that waited: %v, want sent and ErrUnavailable", err)
	}
	wantNotice(t, deliveries)
	awaitReconnect(t, l, deliveries)
	for len(received) > 0 {
		if id := <-received; id == "lost" || id == "late" {
			t.Errorf("the service received %q, which was sent before the connection was lost", id)
		}
	}
}

// A broker that stops to read and write stops neither a call, whose deadline is its own, nor the
// end of the driver.
func TestSend_EndsAtDeadlineBehindSilentBroker(t *testing.T) {
	b := startBroker(t)
	q := queues("silent")
	d, p := proxied(t, b)
	l, deliveries := open(t, d, q)
	p.Hold(t)
	for _, size := range []int{10, d.MaxBytes(), 10} { // the second does not fit into the buffers of the system
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		sent, err := l.Send(ctx, broker.Message{ID: "late", Body: make([]byte, size)})
		if !sent || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d bytes: sent %t, %v; want the error of the deadline", size, sent, err)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Open(ctx, queues("silent2"), func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("open: %v, want ErrUnavailable", err)
	}
	wantNotice(t, deliveries) // after two pings without a response
}

func TestOpen_WrongTokenIsUnavailable(t *testing.T) {
	b := startBroker(t)
	b.Password = dbtest.PulsarToken("tester", "another secret, of 32 bytes or more")
	d := connect(t, b)
	defer d.Close()
	_, err := d.Open(t.Context(), queues("x"), func(broker.Delivery) {})
	if !errors.Is(err, broker.ErrUnavailable) || strings.Contains(err.Error(), b.Password) {
		t.Errorf("got %v, want ErrUnavailable without the token", err)
	}
}

func TestOpen_MissingNamespaceIsUnavailable(t *testing.T) {
	b := startBroker(t)
	q := queues("x")
	q.Request.Space, q.Response.Space = "other", "other"
	d := connect(t, b)
	defer d.Close()
	if _, err := d.Open(t.Context(), q, func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) || !strings.Contains(err.Error(), "non-persistent://other/response/x") {
		t.Errorf("got %v, want ErrUnavailable with the topic", err)
	}
}

func TestOpen_ChecksCertificate(t *testing.T) {
	b := startBroker(t)
	other := t.TempDir() + "/other.pem"
	if _, err := testcert.Write(other, other+".key", 2); err != nil {
		t.Fatal(err)
	}
	for ca, trusted := range map[string]bool{b.CA: true, other: false, "": false} {
		d := connectWith(t, broker.Config{
			Name: "main", URL: "pulsar+ssl://" + net.JoinHostPort(b.Host, strconv.Itoa(b.TLSPort)), Password: b.Password, TLS: broker.TLSFiles{CA: ca},
		})
		defer d.Close()
		l, err := d.Open(t.Context(), queues("tls"), func(broker.Delivery) {})
		if !trusted {
			if !errors.Is(err, broker.ErrUnavailable) {
				t.Errorf("with the issuer %q: %v, want ErrUnavailable", ca, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1"}); !sent || err != nil {
			t.Errorf("sent %t, %v", sent, err)
		}
	}
}
