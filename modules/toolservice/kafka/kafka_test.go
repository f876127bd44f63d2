package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/broker/brokertest"
	"github.com/rolecall/rolecall/modules/toolservice/kafka"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// startKafka starts a fake of Kafka in this process, which speaks its protocol.
func startKafka(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(options, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// connect returns a driver, which the test closes.
func connect(t testing.TB, c *kfake.Cluster) broker.Driver {
	t.Helper()
	d, err := kafka.Connect(broker.Config{Name: "main", URL: "kafka://" + strings.Join(c.ListenAddrs(), ",")})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// commitEnd makes a group begin at the present end of the requests, if it has not begun. A service
// of TrustGraph finds that end a moment after it has started.
func commitEnd(t testing.TB, c *kfake.Cluster, group string, q broker.Queues) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin, topic := kadm.NewClient(client), q.Request.Subject()
	if _, err := admin.CreateTopics(t.Context(), 1, -1, nil, topic, q.Response.Subject()); err != nil {
		t.Fatal(err)
	}
	committed, err := admin.FetchOffsets(t.Context(), group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatal(err)
	}
	if _, begun := committed.Lookup(topic, 0); begun {
		return
	}
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	if err == nil {
		err = admin.CommitAllOffsets(t.Context(), group, ends.Offsets())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serve answers requests as a service of TrustGraph does: in the group of its id, from the end of
// the topic.
func serve(t testing.TB, c *kfake.Cluster, q broker.Queues, answer func(broker.Message, func(broker.Message))) (stop func()) {
	t.Helper()
	group, assigned := q.Service+"-request", make(chan bool, 100)
	commitEnd(t, c, group, q)
	ctx, cancel := context.WithCancel(context.Background())
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(q.Request.Subject()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned <- true }))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			fetches := client.PollFetches(ctx)
			if ctx.Err() != nil {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) {
				answer(broker.Message{ID: header(r, "id"), Token: header(r, "rolecall-token"), Body: r.Value}, func(m broker.Message) {
					response := &kgo.Record{Topic: q.Response.Subject(), Value: m.Body, Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(m.ID)}}}
					if err := client.ProduceSync(ctx, response).FirstErr(); err != nil && ctx.Err() == nil {
						t.Errorf("respond: %v", err)
					}
				})
			})
			if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("commit: %v", err)
			}
		}
	}()
	<-assigned
	stop = func() { cancel(); <-done; client.Close() }
	t.Cleanup(stop)
	return stop
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func TestDriver(t *testing.T)      { brokertest.TestDriver(t, target(t)) }
func BenchmarkDriver(b *testing.B) { brokertest.BenchmarkDriver(b, target(b)) }

// target returns a driver with the fake.
func target(t testing.TB) brokertest.Target {
	c := startKafka(t)
	return brokertest.Target{
		Connect: func(t testing.TB) broker.Driver { return connect(t, c) },
		Serve: func(t testing.TB, q broker.Queues, answer func(broker.Message, func(broker.Message))) func() {
			return serve(t, c, q, answer)
		},
	}
}

// queues returns the queues of a service.
func queues(name string) broker.Queues {
	topic := func(class string) protocol.Topic { return protocol.Topic{Class: class, Space: "tg", Name: name} }
	return broker.Queues{Service: name + "-service", Request: topic("request"), Response: topic("response")}
}

func TestSend_WritesWhatTrustGraphWrites(t *testing.T) {
	c := startKafka(t)
	d := connect(t, c)
	defer d.Close()
	l, err := d.Open(t.Context(), queues("bytes"), func(broker.Delivery) {})
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := l.Send(t.Context(), broker.Message{ID: "id-1", Token: "token", Body: []byte("{}")}); !sent || err != nil {
		t.Fatalf("sent %t, %v", sent, err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("tg.request.bytes"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	records := client.PollFetches(t.Context()).Records()
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	r := records[0]
	if got, want := fmt.Sprintf("%s %q %q %s", r.Topic, r.Key, r.Value, r.Headers), `tg.request.bytes "" "{}" [{id id-1} {rolecall-token token}]`; got != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
}

func TestSend_WithoutBrokerWasNotSent(t *testing.T) {
	t.Parallel() // it waits
	c := startKafka(t)
	d := connect(t, c)
	defer d.Close()
	l, err := d.Open(t.Context(), queues("gone"), func(broker.Delivery) {})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if sent, err := l.Send(ctx, broker.Message{ID: "id-1"}); sent || !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("sent %t, %v; want ErrUnavailable", sent, err)
	}
}

func TestOpen_WithoutBrokerIsUnavailable(t *testing.T) {
	d, err := kafka.Connect(broker.Config{Name: "main", URL: "kafka://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Open(ctx, queues("x"), func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("open: %v, want ErrUnavailable", err)
	}
}

// waitForPassword returns how long a test waits for a broker that accepts or rejects a password:
// the client tries again.
func waitForPassword(right bool) time.Duration {
	if right {
		return 30 * time.Second
	}
	return 200 * time.Millisecond
}

func TestOpen_SignsIn(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		c := startKafka(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "ann", "secret"))
		for password, want := range map[string]bool{"secret": true, "wrong": false} {
			d, err := kafka.Connect(broker.Config{
				Name: "main", URL: "kafka://" + c.ListenAddrs()[0], User: "ann", Password: password, Settings: []byte(`{"mechanism":"` + mechanism + `"}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), waitForPassword(want))
			_, err = d.Open(ctx, queues("x"), func(broker.Delivery) {})
			cancel()
			if (err == nil) != want || err != nil && (!errors.Is(err, broker.ErrUnavailable) || strings.Contains(err.Error(), password+"\"")) {
				t.Errorf("%s with the password %q: %v", mechanism, password, err)
			}
		}
	}
}

func TestKind_RejectsConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		config broker.Config
		want   string
	}{
		"no url":        {broker.Config{URL: "-"}, "write kafka://HOST:PORT"},
		"other scheme":  {broker.Config{URL: "http://a:1"}, "write kafka://HOST:PORT"},
		"no port":       {broker.Config{URL: "kafka://a"}, "write kafka://HOST:PORT"},
		"credentials":   {broker.Config{URL: "kafka://ann:secret@a:1"}, "in fields of their own"},
		"path":          {broker.Config{URL: "kafka://a:1/b"}, "write kafka://HOST:PORT"},
		"embedded":      {broker.Config{Listen: "127.0.0.1:1"}, "never embedded"},
		"half a login":  {broker.Config{User: "ann"}, "belong together"},
		"setting":       {broker.Config{Settings: []byte(`{"a":1}`)}, "write an object with mechanism"},
		"mechanism":     {broker.Config{User: "ann", Password: "secret", Settings: []byte(`{"mechanism":"GSSAPI"}`)}, "the mechanism is PLAIN"},
		"without login": {broker.Config{Settings: []byte(`{"mechanism":"PLAIN"}`)}, "needs user and password"},
		"half a pair":   {broker.Config{URL: "kafkas://a:1", TLS: broker.TLSFiles{Cert: "c"}}, "cert and key belong together"},
		"plain":         {broker.Config{TLS: broker.TLSFiles{CA: "c"}}, "begins with kafkas://"},
		"no file":       {broker.Config{URL: "kafkas://a:1", TLS: broker.TLSFiles{CA: "/missing"}}, "/missing cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config
			config.Name = "main"
			switch config.URL {
			case "":
				config.URL = "kafka://a:1,b:2"
			case "-":
				config.URL = ""
			}
			_, err := kafka.Kind().Connect(config)
			if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
