package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// stepScript is a script whose steps do little.
const stepScript = `role("*", function* () { for (let i = 0;; i++) yield call("echo", {i}) })`

// runAgentScripts shows how long a step of an agent script takes, in the sandbox and in this process.
// Agents take turns, or step all at once. It also shows the memory of the workers.
func runAgentScripts(w *tabwriter.Writer) {
	fmt.Fprintln(w, "agent scripts\tagents\ta step, taking turns: median\t99 of 100\tall at once, per step\tworkers\tmemory of all workers, at most")
	for _, agents := range []int{64, 1000} {
		var procs workerProcesses
		pool := script.NewWorkerPool(procs.start)
		m := must(script.Config{Workers: pool}.New("agents.js", []byte(stepScript)))
		turns, together := measureSteps(m, agents)
		fmt.Fprintf(w, "worker processes\t%d\t%v\t%v\t%v\t%d\t%d MiB\n", agents, percentile(turns, 50), percentile(turns, 99), together, len(procs.list), procs.peakMemory()>>20)
		must(0, m.Close())
		pool.Close()
	}
	m := must(script.Config{CacheSize: 1024, Log: slog.New(slog.DiscardHandler)}.New("agents.js", []byte(stepScript)))
	turns, together := measureSteps(m, 64)
	fmt.Fprintf(w, "this process\t64\t%v\t%v\t%v\t\t\n", percentile(turns, 50), percentile(turns, 99), together)
	must(0, m.Close())
}

// measureSteps returns the sorted times of steps of agents that take turns, and the time of a step
// when all agents have steps at once.
func measureSteps(m model.Model, agents int) (turns []time.Duration, together time.Duration) {
	list := make([]*scriptedAgent, agents)
	for i := range list {
		list[i] = newScriptedAgent(i)
		list[i].step(m) // loads the script
	}
	for range 10 + 5000/agents {
		for _, a := range list {
			turns = append(turns, a.step(m))
		}
	}
	slices.Sort(turns)
	const stepsEach = 20
	began := time.Now()
	var all sync.WaitGroup
	for _, a := range list {
		all.Go(func() {
			for range stepsEach {
				a.step(m)
			}
		})
	}
	all.Wait()
	return turns, time.Since(began) / time.Duration(stepsEach*agents)
}

// percentile returns a percentile of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)-1)*p/100].Round(time.Microsecond)
}

// scriptedAgent is an agent whose model is a script. The request has its conversation.
type scriptedAgent struct {
	request model.Request
	calls   int
}

func newScriptedAgent(n int) *scriptedAgent {
	return &scriptedAgent{request: model.Request{
		Self: model.AgentInfo{ID: identity.AgentID(fmt.Sprint("agent ", n)), Role: "worker", Task: "task"}, Tools: []string{"echo"},
		Items: []model.Item{{Message: &model.Message{ID: "1", From: "user", Payload: json.RawMessage(`{"text":"go"}`)}}},
	}}
}

// step asks for the next answer and returns how long that took. It appends the answer and a result.
func (a *scriptedAgent) step(m model.Model) time.Duration {
	began := time.Now()
	var answer model.Answer
	for delta, err := range m.Generate(context.Background(), a.request) {
		must(0, err)
		answer = *delta.Answer
	}
	took := time.Since(began)
	a.calls++
	id := identity.CallID(strconv.Itoa(a.calls))
	answer.Calls[0].ID = id
	a.request.Items = append(a.request.Items, model.Item{Answer: &answer},
		model.Item{Result: &model.CallResult{Call: id, Tool: "echo", Content: json.RawMessage(`{"ok":true}`)}})
	return took
}

// workerProcesses starts worker processes and lists them.
type workerProcesses struct {
	mu   sync.Mutex
	list []*sandbox.Process
}

func (p *workerProcesses) start() (script.WorkerConn, error) {
	conn, err := builtin.NewScriptStarter(launcher, slog.Default())()
	if process, ok := conn.(*sandbox.Process); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.list = append(p.list, process)
	}
	return conn, err
}

// peakMemory returns the sum of the highest resident sizes of the workers, in bytes. In a sandbox
// the worker is the child of the process that was started.
func (p *workerProcesses) peakMemory() (sum int) {
	for _, process := range p.list {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", process.ID()))
		for _, id := range append(strings.Fields(string(children)), strconv.Itoa(process.ID())) {
			sum += highestResident(id)
		}
	}
	return sum
}

// highestResident returns the highest resident size of a process in bytes, 0 if it is unknown.
func highestResident(id string) int {
	status, _ := os.ReadFile("/proc/" + id + "/status")
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.Atoi(strings.Fields(size)[0]) // the kernel writes numbers
			return kilobytes << 10
		}
	}
	return 0
}
