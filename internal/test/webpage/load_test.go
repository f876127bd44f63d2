package webpage_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/rolecall/rolecall/internal/test/short"
)

var followTime = flag.Duration("follow", 10*time.Second, "how long TestPage_ManyEvents sends 1,000 events a second, for all screens together")

// milliseconds returns a number that an expression yields.
func (p *tab) milliseconds(expression string) float64 {
	p.t.Helper()
	ms, ok := p.eval(expression).(float64)
	if !ok {
		p.t.Fatalf("%s is no number", expression)
	}
	return ms
}

// With 5,000 agents the first rows are there within a second, and an event is drawn within 50 ms,
// by the clock of the page. Times are those of the best of three attempts: the machine may be busy.
func TestPage_ManyAgents(t *testing.T) {
	short.SkipSequential(t)
	s := startServer(t)
	const agents = 5000
	s.send(t, "ann", "POST", "/api/v1/tasks", fmt.Sprintf(`{"text":"many %d"}`, agents))
	p := openTab(t, newBrowser(t), s)
	p.signIn("ann")
	p.goTo("#/organization")
	p.waitFor(`document.querySelector("main").innerText.includes("5,001 agents")`, 5*patience) // the server spawns them meanwhile
	rows, painted := 1e9, 1e9
	for range 3 {
		p.goTo("#/tools")
		rows = min(rows, p.milliseconds(`new Promise((done) => {
			const start = performance.now();
			const look = () => document.querySelectorAll(".row.org").length > 10 ? done(performance.now() - start) : requestAnimationFrame(look);
			location.hash = "#/organization";
			look();
		})`))
		p.eval(`performance.clearMeasures("rolecall-events"); 0`)
		startTask(t, s, "deny 1")
		p.wait(`performance.getEntriesByName("rolecall-events").length === 1`)
		painted = min(painted, p.milliseconds(`performance.getEntriesByName("rolecall-events")[0].duration`))
	}
	t.Logf("first rows after %.0f ms, an event drawn after %.1f ms", rows, painted)
	if rows > 1000 || painted > 50 {
		t.Errorf("first rows after %.0f ms, want 1000; an event drawn after %.1f ms, want 50", rows, painted)
	}
	if drawn := p.milliseconds(`document.querySelectorAll(".row.org").length`); drawn > 120 {
		t.Errorf("%v rows are in the document", drawn)
	}
	p.checkProblems("5,000 agents")
}

const (
	eventRate   = 1000                   // events in a second
	longestTask = 200 * time.Millisecond // of the page, in processor time
	heapGrowth  = 8 << 20                // bytes that the page may need more at the end of a screen's time than after its first third
)

// While 1,000 events arrive in a second, no task of the page takes long on any screen, and its
// memory does not grow with their number. The events are those of real tasks, repeated. A task is
// measured by the time that it had a processor, since other programs may have it meanwhile.
func TestPage_ManyEvents(t *testing.T) {
	short.SkipSequential(t)
	s := startServer(t)
	task := startBusyTask(t, s)
	source := newEventSource(t, s, task, startTask(t, s, "hello"))
	p := openTab(t, newBrowser(t), s.behind(t, source.serve))
	p.signIn("ann")
	places := []string{"record", "task/" + task, "organization", "organization?form=Picture", "task"}
	for _, place := range places {
		p.goTo("#/" + place)
		p.eval(`performance.clearMeasures("rolecall-events"); 0`)
		before := source.sent()
		time.Sleep(*followTime / time.Duration(3*len(places)))
		heap := p.heapSize()
		tasks := p.traceTasks(func() { time.Sleep(*followTime / time.Duration(3*len(places)) * 2) })
		grown := p.heapSize() - heap
		longest := slices.MaxFunc(tasks, func(a, b pageTask) int { return cmp.Compare(a.CPU, b.CPU) })
		t.Logf("%s: %d events; the longest task took %v of the processor (%v); the heap grew by %.1f MiB", place, source.sent()-before, longest.CPU, longest.Wall, grown/(1<<20))
		if longest.CPU > longestTask {
			t.Errorf("%s: a task took %v", place, longest.CPU)
		}
		if grown > heapGrowth {
			t.Errorf("%s: the heap grew by %.1f MiB", place, grown/(1<<20))
		}
		if drawn := p.eval(`performance.getEntriesByName("rolecall-events").length`); drawn != 1.0 {
			t.Errorf("%s: no event was drawn", place)
		}
		if text := p.text(); strings.Contains(text, "Not live") {
			t.Errorf("%s: the stream was lost", place)
		}
		p.checkProblems(place)
	}
	p.goTo("#/record")
	p.wait(fmt.Sprintf(`Number(new URLSearchParams(document.querySelector("main tbody a").hash.split("?")[1]).get("event")) > %d`, source.seq.Load()))
}

// startBusyTask starts a task that has made allowed and denied calls, has agents, and goes on.
func startBusyTask(t *testing.T, s *server) (id string) {
	t.Helper()
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"busy 20"}`), &task)
	for {
		var page struct{ Items []json.RawMessage }
		decode(t, s.send(t, "ann", "GET", "/api/v1/events?denied=true&limit=100&task="+task.ID, ""), &page)
		if len(page.Items) >= 20 {
			return task.ID
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// eventSource sends the events of two tasks again and again: those of one that goes on, and those
// of a short one as if it were started anew each time.
type eventSource struct {
	events []map[string]any
	ids    []string // that differ each time: those of calls, and of the short task and its agent
	first  int
	seq    atomic.Int64 // number of the last event
}

// newEventSource returns a source of events like those of two tasks.
func newEventSource(t *testing.T, s *server, busy, short string) *eventSource {
	t.Helper()
	c := &eventSource{ids: []string{short}}
	for _, query := range []string{"type=message,model_answered,tool_call,tool_result,tool_error&task=" + busy, "task=" + short} {
		var page struct {
			Items []map[string]any
			Last  int
		}
		decode(t, s.send(t, "ann", "GET", "/api/v1/events?limit=1000&"+query, ""), &page)
		slices.Reverse(page.Items)
		c.events, c.first = append(c.events, page.Items...), page.Last
	}
	for _, e := range c.events {
		for _, field := range []string{"call", "agent"} {
			if id, ok := e[field].(string); ok && (field == "call" || e["task"] == short) && !slices.Contains(c.ids, id) {
				c.ids = append(c.ids, id)
			}
		}
	}
	c.seq.Store(int64(c.first))
	return c
}

// sent returns how many events were sent.
func (c *eventSource) sent() int { return int(c.seq.Load()) - c.first }

// serve answers requests for the event stream.
func (c *eventSource) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/api/v1/events" || r.FormValue("follow") == "" {
		return false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for start, sent := time.Now(), 0; ; {
		select {
		case <-r.Context().Done():
			return true
		case <-ticker.C:
			for ; float64(sent) < eventRate*time.Since(start).Seconds(); sent++ {
				fmt.Fprintf(w, "data: %s\n\n", c.next())
			}
			http.NewResponseController(w).Flush()
		}
	}
}

// next returns the next event.
func (c *eventSource) next() string {
	seq := int(c.seq.Add(1))
	e, round := maps.Clone(c.events[seq%len(c.events)]), seq/len(c.events)
	e["seq"], e["at"] = seq, time.Now().UTC().Format(time.RFC3339Nano)
	text, _ := json.Marshal(e) // it was decoded from JSON
	var renewed []string
	for _, id := range c.ids {
		renewed = append(renewed, id, fmt.Sprintf("%s%08x", id[:len(id)-8], round))
	}
	return strings.NewReplacer(renewed...).Replace(string(text))
}

// pageTask is a task that the main thread of a page has run.
type pageTask struct{ CPU, Wall time.Duration }

// traceTasks returns the tasks of the page while do runs.
func (p *tab) traceTasks(do func()) (tasks []pageTask) {
	p.t.Helper()
	collected, done := []*tracing.EventDataCollected{}, make(chan struct{})
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			collected = append(collected, e)
		case *tracing.EventTracingComplete:
			close(done)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	call(p, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel"}, ExcludedCategories: []string{"*"}}})
	do()
	call(p, tracing.End, cdp.Empty{})
	<-done
	return tasksOf(p.t, collected)
}

// tasksOf returns the tasks of the main threads of renderers in a trace.
func tasksOf(t *testing.T, collected []*tracing.EventDataCollected) (tasks []pageTask) {
	t.Helper()
	type thread struct{ PID, TID int }
	type entry struct {
		thread
		Name      string
		Args      struct{ Name string }
		TDur, Dur int64 // microseconds
	}
	var all []entry
	main := map[thread]bool{}
	for _, part := range collected {
		for _, text := range part.Value {
			var e entry
			if json.Unmarshal(text, &e) != nil {
				continue
			}
			all = append(all, e)
			main[e.thread] = main[e.thread] || e.Name == "thread_name" && e.Args.Name == "CrRendererMain"
		}
	}
	for _, e := range all {
		if main[e.thread] && e.TDur > 0 {
			tasks = append(tasks, pageTask{time.Duration(e.TDur) * time.Microsecond, time.Duration(e.Dur) * time.Microsecond})
		}
	}
	if len(tasks) == 0 {
		t.Fatal("the trace has no task of the page")
	}
	return tasks
}

// heapSize returns the bytes of the page's heap after a collection.
func (p *tab) heapSize() float64 {
	p.t.Helper()
	call(p, heapprofiler.CollectGarbage, cdp.Empty{})
	return call(p, runtime.GetHeapUsage, cdp.Empty{}).UsedSize
}

// call calls a method of the browser for the tab.
func call[P, R any](p *tab, method cdp.Command[P, R], params P) (result R) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) (err error) {
		result, err = cdp.Call(ctx, target, method, params)
		return err
	}))
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}
