package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// onceSubjects lists what is measured once, in memory and time.
var onceSubjects = []struct {
	name string
	show func(w *tabwriter.Writer)
	long bool // runs only when it is named
}{
	{"idle", runIdle, false},
	{"start", runStart, false},
	{"agentscript", runAgentScripts, false},
	{"invoke", runInvoke, false},
	{"wrk", runWrk, true},
	{"streams", runStreams, true},
	{"million", runMillion, true},
	{"opened", runMillionOpened, true},
	{"restart", runReopened, true},
	{"load", runLoads, true},
	{"soak", runSoak, true},
	{"toolbox", runToolbox, true},
}

// populationSize returns the number of agents from the flag, or the default.
func populationSize(byDefault int) int {
	if *agentCount == 0 {
		return byDefault
	}
	return *agentCount
}

// heapBytes returns the size of the heap after a collection.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // frees what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// runIdle shows the cost of idle agents: the heap of a runtime that reopens their
// store, and the size of the store in memory.
func runIdle(w *tabwriter.Writer) {
	fmt.Fprintln(w, "idle agents\torganization heap per agent\tin-memory store per agent\tgoroutines\tready again after")
	n, goroutines, before := populationSize(100_000), runtime.NumGoroutine(), heapBytes()
	store := memory.New()
	spawnAll(store, n)
	goroutines = runtime.NumGoroutine() - goroutines
	stored, start := heapBytes(), time.Now()
	fx := must(openFixture(store, waitingModel{}))
	took := time.Since(start)
	each := (heapBytes() - stored) / int64(n)
	fmt.Fprintf(w, "%d\t%d B\t%d B\t%d\t%v\n", n, each, (stored-before)/int64(n), goroutines, took.Round(time.Millisecond))
	w.Flush()
	fx.Close()
	reportResults(soakreport.Result{
		Part: "load", Claim: "heap and goroutines of an idle agent", Goal: "≤ 512 B, 0",
		Observed: fmt.Sprintf("%d B, %d, of %d agents", each, goroutines, n), Passed: each <= 512 && goroutines == 0,
	})
}

// spawnAll fills a store with idle agents.
func spawnAll(store *memory.Store, n int) {
	s := newTaskFixture(store)
	defer s.close()
	for range n {
		s.spawn(nil)
	}
}

// runStart shows how long it takes until 5,000 tools are registered and visible.
func runStart(w *tabwriter.Writer) {
	const tools = 5000
	fmt.Fprintln(w, "5,000 tools\tready after\tCPU time\theap")
	for _, kind := range []struct {
		name string
		make func(name string) tool.Tool
	}{
		{"one schema for all, inferred from a Go type", func(name string) tool.Tool { return must(newTool(name, nil)) }},
		{"a schema of its own each, given as JSON", func(name string) tool.Tool { return jsonSchemaTool(name) }},
	} {
		before, used, start := heapBytes(), cpu(), time.Now()
		groups := toolgroups.NewManager()
		for g := range tools / 10 {
			group := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprintf("group_%d", g))}
			for i := range 10 {
				group.Tools = append(group.Tools, kind.make(fmt.Sprintf("tool_%d_%d", g, i)))
			}
			must(grouptest.RegisterGroup(groups, "bench", group))
		}
		subject := unrestrictedSubject(groups)
		visible := len(subject.VisibleTools())
		took, used := time.Since(start), cpu()-used
		fmt.Fprintf(w, "%s\t%v\t%v\t%.1f MiB\n", kind.name, took.Round(time.Millisecond), used.Round(time.Millisecond), float64(heapBytes()-before)/(1<<20))
		if visible != tools {
			fmt.Fprintln(os.Stderr, "bench: start: got", visible, "visible tools")
		}
		runtime.KeepAlive(groups)
	}
}

// unrestrictedSubject returns a subject that may use everything.
func unrestrictedSubject(groups *toolgroups.Manager) *gate.Subject {
	w := &gateFixture{groups: groups, view: new(toolgroups.ViewRef)}
	s := groups.CurrentSnapshot()
	w.view.PublishView(s.Compile(s.PinOwners(toolgroups.AllGroups())))
	g := must(gate.New(gate.Config{Groups: groups, Directory: w, Log: slog.New(slog.DiscardHandler)}))
	return g.Subject(identity.ByAgent("a"))
}

// jsonSchemaTool is a tool with a JSON schema of its own, such as a tool server sends.
type jsonSchemaTool string

// Definition implements tool.Tool.
func (f jsonSchemaTool) Definition() tool.Definition {
	return tool.Definition{Name: string(f), Description: "A tool of the benchmark.", Input: json.RawMessage(fmt.Sprintf(foreignSchema, f))}
}

const foreignSchema = `{"type":"object","description":"Arguments of %s.","required":["path"],"additionalProperties":false,"properties":{
	"path":{"type":"string","minLength":1,"maxLength":4096,"description":"the path, relative to the workspace"},
	"mode":{"enum":["text","binary"],"default":"text"},
	"range":{"type":"object","properties":{"from":{"type":"integer","minimum":0},"to":{"type":"integer","minimum":0}}},
	"tags":{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"},"maxItems":10}}}`

// Call implements tool.Tool.
func (jsonSchemaTool) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, nil
}
