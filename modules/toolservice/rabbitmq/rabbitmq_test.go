package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/tcpproxy"
	"github.com/rolecall/rolecall/internal/test/testcert"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/broker/brokertest"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/rabbitmq"
	"github.com/rolecall/rolecall/tool"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }

// address returns the URL of the broker, without credentials.
func address(b dbtest.Broker) string {
	return "amqp://" + net.JoinHostPort(b.Host, strconv.Itoa(b.Port))
}

// connect returns a driver, which the test closes.
func connect(t testing.TB, b dbtest.Broker, url string) broker.Driver {
	t.Helper()
	d, err := rabbitmq.Connect(broker.Config{Name: "main", URL: url, User: b.User, Password: b.Password})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// dial connects as a service does.
func dial(t testing.TB, b dbtest.Broker) *amqp.Channel {
	t.Helper()
	conn, err := amqp.DialConfig(address(b), amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: b.User, Password: b.Password}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return channel
}

// consume receives the requests of a service as the one of TrustGraph does.
func consume(t testing.TB, channel *amqp.Channel, q broker.Queues) <-chan amqp.Delivery {
	t.Helper()
	request := q.Request.Subject()
	for _, exchange := range []string{request, q.Response.Subject()} {
		if err := channel.ExchangeDeclare(exchange, "fanout", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	queue, err := channel.QueueDeclare(request+"."+q.Service+"-request", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = channel.QueueDelete(queue.Name, false, false, false) }) // its connection may be lost
	if err := channel.QueueBind(queue.Name, "", request, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := channel.Qos(1, 0, false); err != nil {
		t.Fatal(err)
	}
	requests, err := channel.Consume(queue.Name, "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// respond publishes a response as a service of TrustGraph does. A channel that is closed has ended
// with its test.
func respond(t testing.TB, channel *amqp.Channel, q broker.Queues, r broker.Message) {
	err := channel.Publish(q.Response.Subject(), "", false, false, amqp.Publishing{
		Headers: amqp.Table{"id": r.ID}, ContentType: "application/json", DeliveryMode: 1, Body: r.Body,
	})
	if err != nil && !errors.Is(err, amqp.ErrClosed) {
		t.Errorf("respond: %v", err)
	}
}

// serve answers requests until the test ends or stop is called.
func serve(t testing.TB, b dbtest.Broker, q broker.Queues, answer func(broker.Message, func(broker.Message))) (stop func()) {
	channel := dial(t, b)
	requests, done := consume(t, channel, q), make(chan struct{})
	go func() {
		defer close(done)
		for r := range requests {
			id, _ := r.Headers["id"].(string)
			token, _ := r.Headers["rolecall-token"].(string)
			answer(broker.Message{ID: id, Token: token, Body: r.Body}, func(m broker.Message) { respond(t, channel, q, m) })
			if err := r.Ack(false); err != nil && !errors.Is(err, amqp.ErrClosed) {
				t.Errorf("acknowledge: %v", err)
			}
		}
	}()
	stop = func() { _ = channel.Close(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestDriver(t *testing.T)      { brokertest.TestDriver(t, target(t)) }
func BenchmarkDriver(b *testing.B) { brokertest.BenchmarkDriver(b, target(b)) }

// target returns a driver with the real broker.
func target(t testing.TB) brokertest.Target {
	b := dbtest.StartRabbitMQ(t)
	return brokertest.Target{
		ReportsNoService: true,
		Connect:          func(t testing.TB) broker.Driver { return connect(t, b, address(b)) },
		Serve: func(t testing.TB, q broker.Queues, answer func(broker.Message, func(broker.Message))) func() {
			return serve(t, b, q, answer)
		},
	}
}

// queues returns the queues of a service.
func queues(name string) broker.Queues {
	topic := func(class string) protocol.Topic { return protocol.Topic{Class: class, Space: "tg", Name: name} }
	return broker.Queues{Service: name + "-service", Request: topic("request"), Response: topic("response")}
}

// open opens a link. Its deliveries are sent to the channel.
func open(t *testing.T, d broker.Driver, q broker.Queues) (broker.Link, <-chan broker.Delivery) {
	t.Helper()
	deliveries := make(chan broker.Delivery, 10_000)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := d.Open(ctx, q, func(d broker.Delivery) { deliveries <- d })
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

// patience is how long a test waits for what should come.
const patience = 30 * time.Second

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

func TestSend_WritesWhatTrustGraphWrites(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	q := queues("bytes")
	requests := consume(t, dial(t, b), q)
	l, _ := open(t, connect(t, b, address(b)), q)
	if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1", Token: "token", Body: []byte(`{"arguments": "{}"}`)}); !sent || err != nil {
		t.Fatalf("sent %t, %v", sent, err)
	}
	r := receive(t, requests, "request")
	got := fmt.Sprintf("%q %q %v %q %d %q %q %q %q %d", r.Exchange, r.RoutingKey, r.Headers, r.ContentType, r.DeliveryMode, r.CorrelationId, r.ReplyTo, r.Expiration, r.Body, r.Priority)
	if want := `"tg.request.bytes" "" map[id:id-1 rolecall-token:token] "application/json" 1 "" "" "" "{\"arguments\": \"{}\"}" 0`; got != want {
		t.Errorf("the request is\n%s, want\n%s", got, want)
	}
}

// A service that rejects a request gets it again from the broker. The driver sends it once.
func TestSend_SendsOnceToServiceThatRejects(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	q := queues("rejects")
	channel := dial(t, b)
	requests := consume(t, channel, q)
	l, deliveries := open(t, connect(t, b, address(b)), q)
	if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1"}); !sent || err != nil {
		t.Fatalf("sent %t, %v", sent, err)
	}
	if r := receive(t, requests, "request"); r.Redelivered {
		t.Error("the first delivery is a redelivery")
	} else if err := r.Nack(false, true); err != nil {
		t.Fatal(err)
	}
	if r := receive(t, requests, "request"); !r.Redelivered {
		t.Error("the request was sent again")
	} else if err := r.Ack(false); err != nil {
		t.Fatal(err)
	}
	respond(t, channel, q, broker.Message{ID: "id-1", Body: []byte("x")})
	if d := receive(t, deliveries, "response"); d.ID != "id-1" || d.Err != nil {
		t.Errorf("received %q, %v", d.ID, d.Err)
	}
}

// waitFor waits until done reports true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s did not happen", what)
		}
	}
}

// awaitReconnect sends until the link is connected again, and waits for the response.
func awaitReconnect(t *testing.T, l broker.Link, deliveries <-chan broker.Delivery) {
	t.Helper()
	waitFor(t, "a connection", func() bool {
		sent, err := l.Send(t.Context(), broker.Message{ID: "again"})
		if err != nil && !errors.Is(err, broker.ErrUnavailable) {
			t.Fatalf("send: %v", err)
		}
		return sent && err == nil
	})
	for receive(t, deliveries, "response after the connection was lost").ID != "again" {
		continue
	}
}

// echo answers each request.
func echo(m broker.Message, respond func(broker.Message)) {
	respond(broker.Message{ID: m.ID, Body: m.Body})
}

func TestLink_SurvivesKilledBroker(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	q := queues("killed")
	d := connect(t, b, address(b))
	l, deliveries := open(t, d, q)
	received := make(chan string, 10)
	serve(t, b, q, func(m broker.Message, _ func(broker.Message)) { received <- m.ID })
	if sent, err := l.Send(t.Context(), broker.Message{ID: "waits"}); !sent || err != nil {
		t.Fatalf("sent %t, %v", sent, err)
	}
	receive(t, received, "request")
	restart := dbtest.KillRabbitMQ(t)
	if d := receive(t, deliveries, "notice"); !errors.Is(d.Err, broker.ErrUnavailable) || d.ID != "" {
		t.Errorf("received %q, %v, want ErrUnavailable", d.ID, d.Err)
	}
	if sent, err := l.Send(t.Context(), broker.Message{ID: "lost"}); sent || !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("without a broker: sent %t, %v", sent, err)
	}
	restart()
	serve(t, b, q, echo)
	awaitReconnect(t, l, deliveries)
}

func TestLink_SurvivesCutConnection(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	p := tcpproxy.New(t, net.JoinHostPort(b.Host, strconv.Itoa(b.Port)))
	q := queues("cut")
	l, deliveries := open(t, connect(t, b, "amqp://"+p.Address()), q)
	serve(t, b, q, echo)
	for range 3 {
		p.Cut()
		if d := receive(t, deliveries, "notice"); !errors.Is(d.Err, broker.ErrUnavailable) {
			t.Errorf("received %q, %v, want ErrUnavailable", d.ID, d.Err)
		}
		awaitReconnect(t, l, deliveries)
	}
}

// A broker that stops to read and write stops neither a call, whose deadline is its own, nor
// the end of the driver.
func TestSend_EndsAtDeadlineBehindSilentBroker(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	p := tcpproxy.New(t, net.JoinHostPort(b.Host, strconv.Itoa(b.Port)))
	q := queues("silent")
	d := connect(t, b, "amqp://"+p.Address())
	l, _ := open(t, d, q)
	serve(t, b, q, echo)
	p.Hold(t)
	for _, size := range []int{10, 16 << 20, 10} { // the second does not fit into the buffers of the system
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
}

// awaitUnread ends when a queue has 64 responses that were sent and not acknowledged, and fails after
// ten seconds.
const awaitUnread = `
	Unread = fun() -> [U || Q <- rabbit_amqqueue:list(), [{messages_unacknowledged, U}] <- [rabbit_amqqueue:info(Q, [messages_unacknowledged])]] end,
	Await = fun(_, 0) -> error(Unread()); (Self, N) -> lists:member(64, Unread()) orelse (timer:sleep(50) == ok andalso Self(Self, N - 1)) end,
	Await(Await, 200).`

// Responses that arrive faster than they are read wait in the broker.
func TestLink_LimitsUnreadResponses(t *testing.T) {
	const sent = 300
	b := dbtest.StartRabbitMQ(t)
	q := queues("unread")
	gate, received := make(chan struct{}), make(chan struct{}, sent)
	d := connect(t, b, address(b))
	l, err := d.Open(t.Context(), q, func(broker.Delivery) { <-gate; received <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	read := sync.OnceFunc(func() { close(gate) })
	defer func() {
		read()
		if err := errors.Join(l.Close(), d.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	channel := dial(t, b)
	for range sent {
		respond(t, channel, q, broker.Message{ID: "id-1", Body: []byte("x")})
	}
	dbtest.ControlRabbitMQ(t, "eval", awaitUnread)
	read()
	for range sent {
		receive(t, received, "response")
	}
}

// An operator who removes the exchanges breaks the channel of the link alone. It declares them
// again.
func TestLink_SurvivesRemovedExchanges(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	q := queues("removed")
	l, deliveries := open(t, connect(t, b, address(b)), q)
	serve(t, b, q, echo)
	for _, exchange := range []string{q.Response.Subject(), q.Request.Subject()} {
		if err := dial(t, b).ExchangeDelete(exchange, false, false); err != nil {
			t.Fatal(err)
		}
	}
	if sent, err := l.Send(t.Context(), broker.Message{ID: "lost"}); !sent || !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("to an exchange that is gone: sent %t, %v", sent, err)
	}
	if d := receive(t, deliveries, "notice"); !errors.Is(d.Err, broker.ErrUnavailable) {
		t.Errorf("received %q, %v, want ErrUnavailable", d.ID, d.Err)
	}
	serve(t, b, q, echo)
	awaitReconnect(t, l, deliveries)
}

// A service whose exchange was declared with other arguments is not reached, and the others are.
func TestOpen_WrongExchangeDoesNotStopOthers(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	wrong, right := queues("wrong"), queues("right")
	if err := dial(t, b).ExchangeDeclare(wrong.Request.Subject(), "direct", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	d := connect(t, b, address(b))
	l, deliveries := open(t, d, right)
	serve(t, b, right, echo)
	if _, err := d.Open(t.Context(), wrong, func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) || !strings.Contains(err.Error(), "inequivalent arg") {
		t.Errorf("open: %v, want the broker's reason", err)
	}
	if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1"}); !sent || err != nil {
		t.Errorf("sent %t, %v", sent, err)
	}
	if d := receive(t, deliveries, "response"); d.ID != "id-1" || d.Err != nil {
		t.Errorf("received %q, %v", d.ID, d.Err)
	}
}

func TestOpen_WrongPasswordIsUnavailable(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	b.Password = "not the secret"
	d := connect(t, b, address(b))
	defer d.Close()
	_, err := d.Open(t.Context(), queues("x"), func(broker.Delivery) {})
	if !errors.Is(err, broker.ErrUnavailable) || strings.Contains(err.Error(), b.Password) {
		t.Errorf("got %v, want ErrUnavailable without the password", err)
	}
}

func TestOpen_ChecksCertificates(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	other := t.TempDir() + "/other.pem"
	if _, err := testcert.Write(other, other+".key", 2); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files broker.TLSFiles
		want  bool
	}{
		"its issuer and its client":    {broker.TLSFiles{CA: b.CA, Cert: b.CA, Key: b.Key}, true},
		"another issuer":               {broker.TLSFiles{CA: other, Cert: b.CA, Key: b.Key}, false},
		"the issuers of the system":    {broker.TLSFiles{Cert: b.CA, Key: b.Key}, false},
		"a client of another issuer":   {broker.TLSFiles{CA: b.CA, Cert: other, Key: other + ".key"}, false},
		"a client without certificate": {broker.TLSFiles{CA: b.CA}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := rabbitmq.Connect(broker.Config{
				Name: "main", URL: "amqps://" + net.JoinHostPort(b.Host, strconv.Itoa(b.TLSPort)), User: b.User, Password: b.Password, TLS: c.files,
			})
			if err != nil {
				t.Fatal(err)
			}
			q := queues("tls")
			if !c.want {
				defer d.Close()
				if _, err := d.Open(t.Context(), q, func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) {
					t.Errorf("open: %v, want ErrUnavailable", err)
				}
				return
			}
			l, deliveries := open(t, d, q)
			serve(t, b, q, echo)
			if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1"}); !sent || err != nil {
				t.Errorf("sent %t, %v", sent, err)
			}
			if d := receive(t, deliveries, "response"); d.ID != "id-1" || d.Err != nil {
				t.Errorf("received %q, %v", d.ID, d.Err)
			}
		})
	}
}

// newTool returns a mutating tool of a service. Its calls end after a second.
func newTool(t *testing.T, b dbtest.Broker, q broker.Queues) tool.Tool {
	t.Helper()
	d := connect(t, b, address(b))
	m, err := toolservice.New(toolservice.Config{
		Service: toolservice.Service{ID: q.Service, Request: q.Request, Response: q.Response, Timeout: time.Second},
		Tools:   []toolservice.Tool{{Definition: tool.Definition{Name: "tell-joke", Effect: tool.Mutating}}},
		Broker:  func() (broker.Driver, func() error, error) { return d, d.Close, nil },
	})
	if err == nil {
		err = m.Provision(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m.ToolGroups()[0].Tools[0]
}

// outcome calls a tool and returns its text, or its error.
func outcome(t *testing.T, joke tool.Tool) string {
	t.Helper()
	r, err := joke.Call(t.Context(), tool.Call{ID: "call-1", By: identity.ByAgent("agent-1"), Owner: "user:ann@teller"})
	if err != nil {
		t.Fatal(err)
	}
	return r.Text + string(r.Structured)
}

// A broker that lacks memory or disk takes one more request of each connection, and no response to
// it. Later calls fail at once, and may be repeated.
func TestCall_BrokerTakesNoMessagesForAWhile(t *testing.T) {
	b := dbtest.StartRabbitMQ(t)
	for name, alarm := range map[string]struct{ on, off []string }{
		"memory": {[]string{"set_vm_memory_high_watermark", "0"}, []string{"set_vm_memory_high_watermark", "0.4"}},
		"disk":   {[]string{"set_disk_free_limit", "1000000GB"}, []string{"set_disk_free_limit", "1MB"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := queues("blocked" + name)
			serve(t, b, q, func(m broker.Message, respond func(broker.Message)) {
				respond(broker.Message{ID: m.ID, Body: []byte(`{"response": "a joke", "end_of_stream": true}`)})
			})
			joke := newTool(t, b, q)
			if got := outcome(t, joke); got != "a joke" {
				t.Fatalf("before: %q", got)
			}
			dbtest.ControlRabbitMQ(t, alarm.on...)
			defer dbtest.ControlRabbitMQ(t, alarm.off...)
			waitFor(t, "the notice that the broker takes no messages", func() bool {
				return strings.Contains(outcome(t, joke), "takes no messages for now")
			})
			for range 20 {
				begun := time.Now()
				got := outcome(t, joke)
				if !strings.Contains(got, `"error":"tool_unavailable"`) || !strings.Contains(got, "takes no messages for now; it may be called again later") || time.Since(begun) > 500*time.Millisecond {
					t.Errorf("%q after %v, want tool_unavailable at once", got, time.Since(begun))
				}
			}
			dbtest.ControlRabbitMQ(t, alarm.off...)
			waitFor(t, "an answer", func() bool { return outcome(t, joke) == "a joke" })
		})
	}
}
