package brokertest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// BenchmarkDriver measures round trips of 200 bytes through a driver and its broker, with one and
// with 64 in flight. It reports the 50th and the 99th percentile of their times.
func BenchmarkDriver(b *testing.B, target Target) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d in flight", inFlight), func(b *testing.B) { benchmark(b, target, inFlight) })
	}
}

// roundTrips are the round trips in progress.
type roundTrips struct {
	mu    sync.Mutex // guards byID
	byID  map[string]chan bool
	times chan time.Duration
}

// add returns a channel that is closed when the response to a request arrives.
func (w *roundTrips) add(id string) <-chan bool {
	done := make(chan bool)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byID[id] = done
	return done
}

// receive takes a response.
func (w *roundTrips) receive(d broker.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done := w.byID[d.ID]; done != nil && d.Err == nil {
		close(done)
		delete(w.byID, d.ID)
	}
}

func benchmark(b *testing.B, target Target, inFlight int) {
	q, d := queues(b, "bench"+strconv.Itoa(inFlight)), connect(b, target)
	w := &roundTrips{byID: map[string]chan bool{}, times: make(chan time.Duration, b.N)}
	l, err := d.Open(b.Context(), q, w.receive)
	if err != nil {
		b.Fatal(err)
	}
	stop := target.Serve(b, q, func(m broker.Message, respond func(broker.Message)) { respond(broker.Message{ID: m.ID, Body: m.Body}) })
	defer stop()
	b.ResetTimer()
	var all sync.WaitGroup
	for worker := range inFlight {
		all.Go(func() {
			for i := worker; i < b.N; i += inFlight {
				w.roundTrip(b, l, strconv.Itoa(i))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	w.report(b)
}

// roundTrip sends a request and waits for the response.
func (w *roundTrips) roundTrip(b *testing.B, l broker.Link, id string) {
	start, done := time.Now(), w.add(id)
	if _, err := l.Send(b.Context(), broker.Message{ID: id, Body: make([]byte, 200)}); err != nil {
		b.Errorf("send: %v", err)
		return
	}
	select {
	case <-done:
		w.times <- time.Since(start)
	case <-time.After(receiveTimeout):
		b.Errorf("no response to %s arrived", id)
	}
}

// report reports the percentiles.
func (w *roundTrips) report(b *testing.B) {
	close(w.times)
	var times []time.Duration
	for t := range w.times {
		times = append(times, t)
	}
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(times[(len(times)-1)*percent/100].Microseconds()), fmt.Sprintf("p%d-µs", percent))
	}
}
