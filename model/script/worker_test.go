package script_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// stuck is a script that the engine cannot interrupt, beside one that works.
const stuck = `role("stuck", function* () { yield say("before"); Array.prototype.indexOf.call({length: 2**53 - 1}, 1) });
role("*", function* (task) { let n = 0; for (let i = 0; i < 20; i++) n += (yield call("echo", {i})).echo.i; console.log("sum"); return [self.role, n] })`

// Scripts do the same in the sandbox, in plain processes and in this process.
func TestModel_IsTheSameInEveryWorker(t *testing.T) {
	const source = `
		let turns = 0;
		role("root", function* (task) {
			console.log("begin", ++turns);
			const [a, b] = yield [call("echo", {x: task.payload}), call("fail")];
			yield say("a ü <b> & \u2028 \u0000 end");
			const more = yield receive();
			if (more.payload === 3) null.x;
			return {a, b, more: more.payload, tools, state: self.state, turns};
		});`
	run := func(c script.Config) (lines []string) {
		rt := newFakeRuntime("root")
		m := newModel(t, c, source)
		if err := rt.run(t, m, map[int][]string{0: {`1`}, 3: {`2`}}); err != nil {
			t.Fatal(err)
		}
		err := rt.run(t, m, map[int][]string{0: {`1`, `3`}})
		return append(rt.lines, fmt.Sprint(err))
	}
	want := run(script.Config{})
	if len(want) != 7 || !strings.Contains(want[6], "agents.js:8:32: TypeError") {
		t.Fatalf("got %q", want)
	}
	for name, sandboxed := range map[string]bool{"plain process": false, "sandbox": true} {
		t.Run(name, func(t *testing.T) {
			if sandboxed {
				requireSandbox(t)
			}
			for _, cached := range []int{0, -1} {
				if diff := cmp.Diff(want, run(script.Config{Workers: newWorkers(t, sandboxed).WorkerPool, CacheSize: cached})); diff != "" {
					t.Errorf("(-in process +in a worker):\n%s", diff)
				}
			}
		})
	}
}

// An agent whose script cannot be interrupted fails. The other agents of its file go on.
func TestModel_ScriptThatCannotBeInterruptedFailsAlone(t *testing.T) {
	m := newModel(t, script.Config{Workers: newWorkers(t, false).WorkerPool, StepTimeout: time.Second}, stuck)
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 6 {
		all.Go(func() {
			role := fmt.Sprint("role", i)
			rt := newFakeRuntime(role)
			for range 3 {
				if err := rt.run(t, m, map[int][]string{0: {`1`}}); err != nil {
					t.Error(err)
				}
			}
			if got, want := rt.lines[len(rt.lines)-1], fmt.Sprintf(`end [%q,190] read=3 log=["sum"]`, role); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	e := wantCode(t, newFakeRuntime("stuck").run(t, m, map[int][]string{0: {`1`}}), errcode.LLMCallFailed, `role "stuck" failed in step 2`, "ran out of time")
	if e.Details["step"] != 2 || e.Details["read"] != 1 {
		t.Errorf("got details %v", e.Details)
	}
}

// The top level of a source runs in a worker too.
func TestNew_SourceThatCannotBeInterrupted(t *testing.T) {
	c := script.Config{Workers: newWorkers(t, false).WorkerPool, StepTimeout: 50 * time.Millisecond}
	_, err := c.New("agents.js", []byte("Array.prototype.indexOf.call({length: 2**53 - 1}, 1)"))
	wantCode(t, err, errcode.InvalidConfig, "agents.js: the script ran out of time")
}

// A worker that is killed in the middle of a step fails that step. Agents whose scripts it
// had continue in the next worker, where their recorded steps have no effect.
func TestModel_WorkerKilledInStepFailsStep(t *testing.T) {
	w := newWorkers(t, false)
	w.sent = func(p *sandbox.Process, line string) {
		if strings.Contains(line, `"looping"`) {
			process, err := os.FindProcess(p.ID())
			if err == nil {
				err = process.Kill()
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	m := newModel(t, script.Config{Workers: w.WorkerPool, StepTimeout: time.Hour},
		`role("*", function* (task) { console.log("begin"); for (; task.payload === "looping";); yield call("echo"); return "done" })`)
	other := newFakeRuntime("other")
	other.addMessage(`1`)
	a, err := ask(t, m, other.request())
	if err != nil {
		t.Fatal(err)
	}
	other.record(a)
	e := wantCode(t, newFakeRuntime("root").run(t, m, map[int][]string{0: {`"looping"`}}), errcode.LLMCallFailed, "failed in step 1", "ended before it responded")
	if e.Details["step"] != 1 || e.Details["read"] != 1 {
		t.Errorf("got details %v", e.Details)
	}
	if err := other.run(t, m, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`calls echo{} read=1 log=["begin"]`, `end "done" read=1`}, other.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(w.processes()); n < 2 {
		t.Errorf("got %d workers, want another one after the first was killed", n)
	}
}

// lossyConn is the connection to a worker that ends before each step.
type lossyConn struct{ script.WorkerConn }

func (c lossyConn) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "rolecall.start") {
		return 0, io.ErrClosedPipe
	}
	return c.WorkerConn.Write(line)
}

func TestModel_BoundsAttempts(t *testing.T) {
	started := 0
	pool := script.NewWorkerPool(func() (script.WorkerConn, error) {
		started++
		p, err := launcher.StartProcess(sandbox.Job{Program: "javascript", Unsandboxed: true})
		return lossyConn{p}, err
	})
	defer pool.Close()
	m := newModel(t, script.Config{Workers: pool}, stuck)
	e := wantCode(t, newFakeRuntime("root").run(t, m, map[int][]string{0: {`1`}}), errcode.LLMCallFailed, "failed in step 1", "ended again and again")
	if started != 3 || e.Details["step"] != 1 {
		t.Errorf("got %d workers and details %v", started, e.Details)
	}
}

// What a worker says is checked: it may have been taken over by a script.
func TestModel_RejectsWhatIsNoStep(t *testing.T) {
	tests := []struct{ name, value string }{
		{"not an object", `7`},
		{"no op", `{}`},
		{"unknown op", `{"op":"spawn"}`},
		{"no calls", `{"op":"calls","calls":[]}`},
		{"list without calls", `{"op":"calls","list":true}`},
		{"two calls without a list", `{"op":"calls","calls":[{"name":"a","args":"{}"},{"name":"b","args":"{}"}]}`},
		{"arguments are not JSON", `{"op":"calls","calls":[{"name":"a","args":"{"}]}`},
		{"arguments are no object", `{"op":"calls","calls":[{"name":"a","args":"[]"}]}`},
		{"returned value is not JSON", `{"op":"end","value":"{"}`},
		{"no returned value", `{"op":"end"}`},
		{"another type", `{"op":"say","text":7}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			started := 0
			pool := script.NewWorkerPool(func() (script.WorkerConn, error) {
				started++
				value := tt.value
				if started > 1 {
					value = `{"op":"say","text":"fine"}`
				}
				return newFakeWorker(t, func(fakeRequest) string { return value }), nil
			})
			defer pool.Close()
			m := newModel(t, script.Config{Workers: pool}, stuck)
			e := wantCode(t, newFakeRuntime("root").run(t, m, map[int][]string{0: {`1`}}), errcode.LLMCallFailed, "failed in step 1", "is not a step")
			if e.Details["step"] != 1 || e.Details["read"] != 1 {
				t.Errorf("got details %v", e.Details)
			}
			rt := newFakeRuntime("other")
			rt.addMessage(`1`)
			if a, err := ask(t, m, rt.request()); err != nil || a.Text != "fine" || started != 2 {
				t.Errorf("got %v, %v from worker %d; want an answer of the second", a, err, started)
			}
		})
	}
}

// An agent whose script was lost has the next worker alone until it has answered. The others wait.
func TestModel_LostScriptHasNextWorkerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *script.Model
		var all sync.WaitGroup
		start := func(role string) {
			rt := newFakeRuntime(role)
			rt.addMessage(`1`)
			rt.record(&model.Answer{Finish: model.FinishContinue, Text: "x", MessagesRead: 1})
			all.Go(func() {
				_, err := ask(t, m, rt.request())
				if killed := role == "killer"; (err != nil) != killed {
					t.Errorf("%s: got %v", role, err)
				}
			})
		}
		var steps []string // of the second worker
		workers := 0
		pool := script.NewWorkerPool(func() (script.WorkerConn, error) {
			workers++
			worker := workers
			return newFakeWorker(t, func(q fakeRequest) string {
				role := q.Input.Self.Role
				switch {
				case q.Op == "load" && worker == 1:
				case q.Op == "load":
					steps = append(steps, q.Op)
				case role == "killer":
					start("victim")
					synctest.Wait() // until it waits for the worker
					return ""
				case role == "victim" && len(steps) == 1:
					steps = append(steps, role)
					start("other")
					synctest.Wait()
				default:
					steps = append(steps, role)
				}
				if worker == 1 && role != "" {
					t.Errorf("the first worker has a step of %s", role)
				}
				return `{"op":"say","text":"x"}`
			}), nil
		})
		m = newModel(t, script.Config{Workers: pool}, stuck)
		start("killer")
		all.Wait()
		if diff := cmp.Diff([]string{"load", "victim", "victim", "load", "other", "other"}, steps); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		pool.Close()
	})
}

// The machines of a worker that was not used for a minute are gone, and so is what was cached for them.
func TestModel_ForgetsRunsOfIdleWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := script.NewWorkerPool(func() (script.WorkerConn, error) {
			return newFakeWorker(t, func(fakeRequest) string { return `{"op":"say","text":"x"}` }), nil
		})
		m := newModel(t, script.Config{Workers: pool}, stuck)
		rt := newFakeRuntime("root")
		rt.addMessage(`1`)
		if _, err := ask(t, m, rt.request()); err != nil || script.CachedRuns(m) != 1 {
			t.Errorf("got %v and %d runs", err, script.CachedRuns(m))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := script.CachedRuns(m); n != 0 {
			t.Errorf("got %d runs", n)
		}
		pool.Close()
	})
}

// pipe is a net.Conn as a WorkerConn.
type pipe struct{ net.Conn }

func (p pipe) Close() { p.Conn.Close() }

// fakeRequest is a request as a fake worker sees it.
type fakeRequest struct {
	Number, VM   int
	Op, Function string
	Input        struct{ Self struct{ Role string } }
}

// newFakeWorker returns a worker that knows the role "*" and answers every other step with the value
// that answer returns. An answer of "" closes the connection.
func newFakeWorker(t *testing.T, answer func(q fakeRequest) string) script.WorkerConn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		for lines := bufio.NewScanner(server); lines.Scan(); {
			var q fakeRequest
			if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
				t.Error(err)
			}
			text := `["*"]`
			if q.Function != "rolecall.roles" {
				text = answer(q)
			}
			if text == "" {
				return
			}
			if _, err := fmt.Fprintf(server, `{"Number":%d,"Value":%s}`+"\n", q.Number, text); err != nil {
				return
			}
		}
	}()
	return pipe{client}
}

// Many agents that take turns keep their virtual machines, and one that uses up its memory does not
// end the worker of the others.
func TestModel_ManyAgentsKeepTheirMachines(t *testing.T) {
	if short.RaceDetector {
		t.Skip("the race detector needs several times the memory")
	}
	w := newWorkers(t, false)
	var mu sync.Mutex
	loads := 0
	w.sent = func(_ *sandbox.Process, line string) {
		mu.Lock()
		defer mu.Unlock()
		loads += strings.Count(line, `"Op":"load"`)
	}
	m := newModel(t, script.Config{Workers: w.WorkerPool}, `
		role("bomb", function* () { for (const a = [];;) a.push("x".repeat(1000) + a.length) });
		role("*", function* () { for (let i = 0;; i++) yield call("echo", {i}) })`)
	agents := make([]*fakeRuntime, short.Count(100, 1000))
	for i := range agents {
		agents[i] = newFakeRuntime(fmt.Sprint("role", i))
		agents[i].addMessage(`1`)
	}
	for turn := range 3 {
		for _, rt := range agents {
			a, err := ask(t, m, rt.request())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(a.Calls[0].Args), fmt.Sprintf(`{"i":%d}`, turn); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			rt.record(a)
		}
		if turn == 0 {
			wantCode(t, newFakeRuntime("bomb").run(t, m, map[int][]string{0: {`1`}}), errcode.LLMCallFailed, "out of memory")
		}
	}
	if want := 1 + len(agents) + 1; loads != want || len(w.processes()) != 1 {
		t.Errorf("got %d loads in %d workers, want %d in one: each agent once, the source and the bomb", loads, len(w.processes()), want)
	}
}

func TestModel_CloseLeavesNoProcess(t *testing.T) {
	w := newWorkers(t, false)
	m := newModel(t, script.Config{Workers: w.WorkerPool}, stuck)
	if err := newFakeRuntime("root").run(t, m, map[int][]string{0: {`1`}}); err != nil {
		t.Fatal(err)
	}
	if len(w.processes()) == 0 {
		t.Fatal("no worker was started")
	}
	m.Close()
	for _, p := range w.processes() {
		if p, err := os.FindProcess(p.ID()); err == nil && p.Signal(syscall.Signal(0)) == nil {
			t.Errorf("process %d is alive", p.Pid)
		}
	}
}

// TestModel_WorkersEndWithStarter kills a process whose worker is in a step that cannot be
// interrupted.
func TestModel_WorkersEndWithStarter(t *testing.T) {
	if mode := os.Getenv("ROLECALL_STARTER"); mode != "" {
		w := newWorkers(t, mode == "sandbox")
		w.sent = func(_ *sandbox.Process, line string) {
			if strings.Contains(line, `"stuck"`) {
				fmt.Println("step")
			}
		}
		m := newModel(t, script.Config{Workers: w.WorkerPool, StepTimeout: time.Hour}, `role("*", function* () { Array.prototype.indexOf.call({length: 2**53 - 1}, 1) })`)
		t.Fatal("the script ended: ", newFakeRuntime("stuck").run(t, m, map[int][]string{0: {`1`}}))
	}
	for _, mode := range []string{"plain", "sandbox"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "sandbox" {
				requireSandbox(t)
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestModel_WorkersEndWithStarter$")
			cmd.Env = append(os.Environ(), "ROLECALL_STARTER="+mode)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			// The worker inherits the other end of this pipe, so it is read to its end
			// only when the worker has ended too.
			alive, inherited, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer alive.Close()
			cmd.Stderr = inherited
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			inherited.Close()
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "step\n" {
				t.Fatal(line, err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if text, err := io.ReadAll(alive); err != nil {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

func TestNew_WarnsWithoutWorkers(t *testing.T) {
	var log bytes.Buffer
	newModel(t, script.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, stuck)
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "agent scripts run in this process") || !strings.Contains(text, "agents.js") {
		t.Errorf("got %q", text)
	}
	log.Reset()
	newModel(t, script.Config{Workers: newWorkers(t, false).WorkerPool, Log: slog.New(slog.NewTextHandler(&log, nil))}, stuck)
	if log.Len() > 0 {
		t.Errorf("got %q with workers", log.String())
	}
}
