// Package kafka reaches tool services through Kafka, with the topics, headers and bodies of
// TrustGraph. It is a Go module of its own, so that no other program contains a client of Kafka.
//
// A request is a record of the topic tg.request.NAME. Responses are records of the topic
// tg.response.NAME, which a link reads from the end that the topic has when the link opens. All
// callers of a service see all its responses there. Package toolservice drops the responses for
// others.
//
// Kafka keeps requests, for five minutes unless the operator sets another time. It does not report
// that no service receives them. A service that starts within that time may receive a request whose
// caller has given up. It also keeps responses, so a lost connection loses none.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Kind returns the kind kafka.
func Kind() broker.Kind { return broker.Kind{Name: "kafka", Check: check, Connect: Connect} }

// driver makes links. Each has a client of its own.
type driver struct {
	config    broker.Config
	seeds     []string
	tls       *tls.Config    // nil for kafka
	mechanism sasl.Mechanism // nil without a user
	links     *broker.LinkGroup
}

// Connect returns the driver of a configuration; it is the Connect of Kind. It does not wait
// for the broker. Errors: InvalidConfig.
func Connect(c broker.Config) (broker.Driver, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	var s settings
	_ = c.ReadSettings(&s) // check has read them
	d := &driver{config: c, seeds: seeds(c.URL), mechanism: s.mechanism(c), links: broker.NewLinkGroup()}
	var err error
	d.tls, err = readTLS(c)
	return d, err
}

// Limits of links.
const (
	maxBody     = 1<<20 - headerBytes // the default limit of a broker is 1 MiB
	headerBytes = 16 << 10
	maxFetch    = 10 << 20        // of responses at a time
	maxPending  = 256             // requests of a link that wait for the broker
	dialTimeout = 3 * time.Second // of a connection
	retention   = 5 * time.Minute // of a topic that a link creates
	deliverTime = 5 * time.Second // how long a request waits for the broker at most
)

// MaxBytes implements broker.Driver.
func (d *driver) MaxBytes() int { return maxBody }

// Close implements broker.Driver. It waits until the links have ended.
func (d *driver) Close() error {
	d.links.Close()
	return nil
}

// link carries the requests to one service.
type link struct {
	driver   *driver
	client   *kgo.Client
	request  string // the topic
	receive  func(broker.Delivery)
	ctx      context.Context
	cancel   context.CancelFunc
	produced atomic.Int64 // requests of the protocol that carry records and were written, or begun
}

// Open implements broker.Driver.
func (d *driver) Open(ctx context.Context, q broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	l := &link{driver: d, request: q.Request.Subject(), receive: receive}
	var err error
	if l.ctx, l.cancel, err = d.links.Add(); err != nil {
		return nil, err
	}
	err = l.connect(ctx, q.Response.Subject())
	if err != nil {
		l.end()
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	go l.poll()
	return l, nil
}

// end ends the client of a link.
func (l *link) end() {
	l.cancel()
	if l.client != nil {
		l.client.Close()
	}
	l.driver.links.Done()
}

// connect makes the client, and receives what comes after the present end of the responses.
func (l *link) connect(ctx context.Context, response string) (err error) {
	if l.client, err = kgo.NewClient(l.options()...); err != nil {
		return err
	}
	admin := kadm.NewClient(l.client)
	if err := createTopics(ctx, admin, l.request, response); err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, response)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	if len(ends[response]) == 0 {
		return fmt.Errorf("the topic %s has no partitions", response)
	}
	l.client.AddConsumePartitions(ends.KOffsets())
	return nil
}

// createTopics creates the topics that do not exist. One that the account may not create must
// exist.
func createTopics(ctx context.Context, admin *kadm.Client, topics ...string) error {
	keep := fmt.Sprint(retention.Milliseconds())
	results, err := admin.CreateTopics(ctx, 1, -1, map[string]*string{"retention.ms": &keep}, topics...)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, kerr.TopicAlreadyExists) && !errors.Is(r.Err, kerr.TopicAuthorizationFailed) && !errors.Is(r.Err, kerr.ClusterAuthorizationFailed) {
			return fmt.Errorf("create the topic %s: %w", r.Topic, r.Err)
		}
	}
	return nil
}

// options returns the options of a client. Writes are idempotent, so that the client's own
// repetitions add a record once.
func (l *link) options() []kgo.Opt {
	d := l.driver
	list := []kgo.Opt{
		kgo.SeedBrokers(d.seeds...), kgo.ClientID("rolecall"), kgo.WithHooks(l), kgo.DialTimeout(dialTimeout),
		kgo.ProducerBatchMaxBytes(1 << 20), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(maxPending), kgo.RecordDeliveryTimeout(deliverTime), kgo.AllowAutoTopicCreation(),
		kgo.FetchMaxPartitionBytes(maxFetch), kgo.FetchMaxBytes(maxFetch), kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.RetryTimeout(deliverTime), kgo.MetadataMinAge(250 * time.Millisecond),
	}
	if d.tls != nil {
		list = append(list, kgo.DialTLSConfig(d.tls.Clone()))
	}
	if d.mechanism != nil {
		list = append(list, kgo.SASL(d.mechanism))
	}
	return list
}

// produceKey is the number of the request of Kafka's protocol that carries records.
const produceKey = 0

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (l *link) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == produceKey {
		l.produced.Add(1)
	}
}

// Send implements broker.Link. It returns when the broker has the request.
func (l *link) Send(ctx context.Context, m broker.Message) (sent bool, err error) {
	switch {
	case len(m.Body) > maxBody:
		return false, broker.ErrTooLarge
	case l.ctx.Err() != nil:
		return false, fmt.Errorf("%w: %s", broker.ErrUnavailable, l.driver.config.Name)
	}
	r := &kgo.Record{Topic: l.request, Value: m.Body, Headers: []kgo.RecordHeader{{Key: protocol.HeaderID, Value: []byte(m.ID)}}}
	if m.Token != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: protocol.HeaderToken, Value: []byte(m.Token)})
	}
	before, done := l.produced.Load(), make(chan error, 1)
	l.client.TryProduce(ctx, r, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
	if err == nil {
		return true, nil
	}
	// Nothing was written meanwhile, so the request was not. If something was, it may be another.
	return l.produced.Load() != before, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, l.driver.config.Name, err)
}

// poll passes on responses until the link is closed.
func (l *link) poll() {
	defer l.end()
	for {
		fetches := l.client.PollFetches(l.ctx)
		if l.ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(r *kgo.Record) {
			l.receive(broker.Delivery{Message: broker.Message{ID: header(r, protocol.HeaderID), Body: r.Value}})
		})
		if err := fetches.Err(); err != nil && !l.lost(err) {
			return
		}
	}
}

// lost reports that responses may be lost, and waits before the next attempt. It reports false
// if the link was closed.
func (l *link) lost(err error) bool {
	l.driver.config.Log.Warn("responses not read from the broker; reading again", "broker", l.driver.config.Name, "error", err)
	l.receive(broker.Delivery{Err: broker.ErrUnavailable})
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// header returns the last header of a name; "" without one.
func header(r *kgo.Record, name string) (value string) {
	for _, h := range r.Headers {
		if h.Key == name {
			value = string(h.Value)
		}
	}
	return value
}

// Close implements broker.Link. The goroutine of the link closes the client.
func (l *link) Close() error {
	l.cancel()
	return nil
}
