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
	verdicts "github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// sizes lists what is measured once, in memory and time.
var sizes = []struct {
	name string
	show func(w *tabwriter.Writer)
	long bool // only when it is named
}{
	{"idle", idle, false},
	{"start", start, false},
	{"million", million, true},
	{"opened", opened, true},
	{"restart", reopened, true},
	{"load", load, true},
	{"soak", soak, true},
	{"toolbox", toolboxes, true},
}

// population is how many agents were asked for.
func population(otherwise int) int {
	if *agents == 0 {
		return otherwise
	}
	return *agents
}

// heap gives the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// idle shows what agents at rest cost: those of a house that was opened on its
// store again, and those that were just made, with all their records.
func idle(w *tabwriter.Writer) {
	fmt.Fprintln(w, "idle agents\theap of the organization, each\tof the store in memory, each\tgoroutines\tready again after")
	n, goroutines, before := population(100_000), runtime.NumGoroutine(), heap()
	store := memory.New()
	spawnAll(store, n)
	goroutines = runtime.NumGoroutine() - goroutines
	stored, began := heap(), time.Now()
	h := made(openHouse(store, absent{}))
	took := time.Since(began)
	each := (heap() - stored) / int64(n)
	fmt.Fprintf(w, "%d\t%d B\t%d B\t%d\t%v\n", n, each, (stored-before)/int64(n), goroutines, took.Round(time.Millisecond))
	w.Flush()
	h.Close()
	say(verdicts.Result{
		Part: "load", Claim: "what an idle agent takes of the heap, and of goroutines", Goal: "≤ 512 B, 0",
		Observed: fmt.Sprintf("%d B, %d, of %d agents", each, goroutines, n), Passed: each <= 512 && goroutines == 0,
	})
}

// spawnAll fills a store with agents at rest.
func spawnAll(store *memory.Store, n int) {
	s := newSociety(store)
	defer s.close()
	for range n {
		s.spawn(nil)
	}
}

// start shows what it takes until 5,000 tools can be asked for.
func start(w *tabwriter.Writer) {
	const tools = 5000
	fmt.Fprintln(w, "5,000 tools\tready after\tCPU time\theap")
	for _, kind := range []struct {
		name string
		make func(name string) tool.Tool
	}{
		{"one schema for all, inferred from a Go type", func(name string) tool.Tool { return made(newTool(name, nil)) }},
		{"a schema of its own each, given as JSON", func(name string) tool.Tool { return foreign(name) }},
	} {
		before, used, began := heap(), cpu(), time.Now()
		groups := toolgroups.NewManager()
		for g := range tools / 10 {
			group := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprintf("group_%d", g))}
			for i := range 10 {
				group.Tools = append(group.Tools, kind.make(fmt.Sprintf("tool_%d_%d", g, i)))
			}
			made(groups.RegisterGroup("bench", group))
		}
		seat := visitor(groups)
		visible := len(seat.VisibleTools())
		took, used := time.Since(began), cpu()-used
		fmt.Fprintf(w, "%s\t%v\t%v\t%.1f MiB\n", kind.name, took.Round(time.Millisecond), used.Round(time.Millisecond), float64(heap()-before)/(1<<20))
		if visible != tools {
			fmt.Fprintln(os.Stderr, "bench: start: got", visible, "visible tools")
		}
		runtime.KeepAlive(groups)
	}
}

// visitor is somebody who may use everything.
func visitor(groups *toolgroups.Manager) *gate.Subject {
	w := &world{groups: groups, slot: new(toolgroups.ViewRef)}
	s := groups.Snapshot()
	w.slot.PublishView(s.Compile(s.BindSet(toolgroups.All())))
	g := made(gate.New(gate.Config{Groups: groups, Directory: w, Log: slog.New(slog.DiscardHandler)}))
	return g.Subject(identity.ByAgent("a"))
}

// foreign is a tool whose schema was written elsewhere, as a server of tools
// sends it.
type foreign string

// Definition implements tool.Tool.
func (f foreign) Definition() tool.Definition {
	return tool.Definition{Name: string(f), Description: "A tool of the benchmark.", Input: json.RawMessage(fmt.Sprintf(foreignSchema, f))}
}

const foreignSchema = `{"type":"object","description":"Arguments of %s.","required":["path"],"additionalProperties":false,"properties":{
	"path":{"type":"string","minLength":1,"maxLength":4096,"description":"the path, relative to the workspace"},
	"mode":{"enum":["text","binary"],"default":"text"},
	"range":{"type":"object","properties":{"from":{"type":"integer","minimum":0},"to":{"type":"integer","minimum":0}}},
	"tags":{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"},"maxItems":10}}}`

// Call implements tool.Tool.
func (foreign) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
