package jsworker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
	"github.com/rolecall/rolecall/internal/js/jsworker"
	"github.com/rolecall/rolecall/internal/test/short"
)

// counter is a script that counts its calls, loops for ever, or is stuck in a built-in
// function.
const counter = `let n = 0;
function count() { return ++n }
function loop() { for (;;); }
function stuck() { return Array.prototype.indexOf.call({length: 2**53 - 1}, 1) }
function fill(size) { globalThis.filled = Array.from({length: size}, (_, i) => "x".repeat(1000) + i); return size }`

// startReal starts a real process, sandboxed where the system supports it.
func startReal(t *testing.T) *sandbox.Process {
	t.Helper()
	job := sandbox.Job{Program: jsworker.Program, Limits: sandbox.JobLimits{Memory: 1 << 30}}
	p, err := launcher.StartProcess(job)
	if _, missing := errors.AsType[*sandbox.UnavailableError](err); missing {
		t.Log("not sandboxed: ", err)
		job.Unsandboxed = true
		p, err = launcher.StartProcess(job)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newRealGroup returns a group of real processes that has loaded counter.
func newRealGroup(t *testing.T, l js.Limits) *jsworker.VMGroup {
	t.Helper()
	p := jsworker.NewVMPool(func() (jsworker.Conn, error) { return startReal(t), nil })
	t.Cleanup(p.Close)
	return p.NewVMGroup(l, jsworker.Script{Name: "counter.js", Source: counter})
}

// load loads a machine and closes it after the test.
func load(t *testing.T, g *jsworker.VMGroup) *jsworker.VM {
	t.Helper()
	v, err := g.Load(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// wantCall calls a function and checks its result.
func wantCall(t *testing.T, v *jsworker.VM, function, arg, want string) {
	t.Helper()
	if got, err := v.CallFunction(t.Context(), function, json.RawMessage(arg)); err != nil || string(got) != want {
		t.Errorf("%s returned %s, %v; want %s", function, got, err, want)
	}
}

// wantLost checks that a machine is lost.
func wantLost(t *testing.T, v *jsworker.VM) {
	t.Helper()
	if got, err := v.CallFunction(t.Context(), "count", nil); !errors.Is(err, jsworker.ErrLost) {
		t.Errorf("got %s, %v; want ErrLost", got, err)
	}
}

func TestVMGroup_KeepsMachinesApart(t *testing.T) {
	for name, p := range map[string]*jsworker.VMPool{
		"processes":  jsworker.NewVMPool(func() (jsworker.Conn, error) { return startReal(t), nil }),
		"in process": jsworker.NewInProcessPool(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(p.Close)
			g := p.NewVMGroup(js.Limits{}, jsworker.Script{Name: "counter.js", Source: counter})
			a, b := load(t, g), load(t, g)
			wantCall(t, a, "count", "", "1")
			wantCall(t, a, "count", "", "2")
			wantCall(t, b, "count", "", "1")
			a.Close()
			a.Close()
			wantCall(t, b, "count", "", "2")
			wantLost(t, a)
		})
	}
}

func TestVMGroup_ReportsErrorsOfScripts(t *testing.T) {
	p := jsworker.NewInProcessPool()
	t.Cleanup(p.Close)
	_, err := p.NewVMGroup(js.Limits{}, jsworker.Script{Name: "a.js", Source: "\nlet = ;"}).Load(t.Context(), nil)
	if e, ok := errors.AsType[*js.Error](err); !ok || e.Kind != js.KindThrown || e.Source != "a.js" || e.Line != 2 {
		t.Errorf("got %v", err)
	}
	source := jsworker.Script{Source: counter + "\nfunction long() { throw 'x'.repeat(1e6) }\nfunction large() { return 'x'.repeat(2**24) }"}
	for _, tt := range []struct {
		function, arg string
		kind          js.ErrorKind
		text          string
	}{
		{"absent", "", js.KindThrown, "absent is not a function"},
		{"loop", "", js.KindTimeout, "ran out of time"},
		{"long", "", js.KindThrown, "xxx"},
		{"large", "", js.KindMemory, "returned 16777218 bytes"},
		{"count", `"` + strings.Repeat("x", jsworker.MaxStep) + `"`, js.KindMemory, "is given 16777218 bytes"},
	} {
		if short.RaceDetector && tt.function == "large" {
			continue // it writes 16 MiB of JSON
		}
		l := js.Limits{Time: time.Minute}
		if tt.kind == js.KindTimeout {
			l.Time = 50 * time.Millisecond
		}
		_, err := load(t, p.NewVMGroup(l, source)).CallFunction(t.Context(), tt.function, json.RawMessage(tt.arg))
		if e, ok := errors.AsType[*js.Error](err); !ok || e.Kind != tt.kind || !strings.Contains(e.Message, tt.text) || len(e.Message) > 17<<10 {
			t.Errorf("%s: got %.200v", tt.function, err)
		}
	}
}

// The worker of a script that is stuck in a built-in function is killed. Others of it are
// lost, and load again.
func TestVMGroup_KillsWorkerThatCannotBeInterrupted(t *testing.T) {
	g := newRealGroup(t, js.Limits{Time: time.Second})
	var gone sync.WaitGroup
	gone.Add(1)
	other, err := g.Load(t.Context(), gone.Done)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, g).CallFunction(t.Context(), "stuck", nil); errcode.CodeOf(err) != errcode.ToolTimeout {
		t.Errorf("got %v", err)
	}
	gone.Wait()
	wantLost(t, other)
	wantCall(t, load(t, g), "count", "", "1")
}

// signalConn reports each request that was sent.
type signalConn struct {
	jsworker.Conn
	sent func(line string)
}

func (c signalConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent(string(p))
	return n, err
}

func TestVMGroup_WorkerKilledInStep(t *testing.T) {
	p := jsworker.NewVMPool(func() (jsworker.Conn, error) {
		process := startReal(t)
		return signalConn{process, func(line string) {
			if strings.Contains(line, `"loop"`) {
				if err := kill(process.ID()); err != nil {
					t.Error(err)
				}
			}
		}}, nil
	})
	t.Cleanup(p.Close)
	g := p.NewVMGroup(js.Limits{Time: time.Hour}, jsworker.Script{Source: counter})
	other := load(t, g)
	_, err := load(t, g).CallFunction(t.Context(), "loop", nil)
	if errcode.CodeOf(err) != errcode.ToolExecutionFailed || !strings.Contains(errcode.Message(err), "ended before it responded") {
		t.Errorf("got %v", err)
	}
	wantLost(t, other)
	wantCall(t, load(t, g), "count", "", "1")
}

// A worker that was killed between two steps fails no call.
func TestVMGroup_WorkerKilledBetweenSteps(t *testing.T) {
	var process *sandbox.Process
	p := jsworker.NewVMPool(func() (jsworker.Conn, error) { process = startReal(t); return process, nil })
	t.Cleanup(p.Close)
	g := p.NewVMGroup(js.Limits{}, jsworker.Script{Source: counter})
	v := load(t, g)
	process.Close() // kills it and waits for its end; the group does not know
	wantLost(t, v)
	wantCall(t, load(t, g), "count", "", "1")
}

func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func TestVMGroup_CancelledStepEndsWorkerThatGoesOn(t *testing.T) {
	g := newRealGroup(t, js.Limits{Time: time.Hour})
	v, other := load(t, g), load(t, g)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
	if _, err := v.CallFunction(ctx, "stuck", nil); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	wantLost(t, other)
	v = load(t, g)
	if _, err := v.CallFunction(ctx, "count", nil); !errors.Is(err, enough) {
		t.Errorf("got %v from a step whose context ended before", err)
	}
	wantCall(t, v, "count", "", "1")
}

// A worker that closes machines to save memory never closes the one whose step it is.
func TestServe_ClosesLeastRecentlyUsedMachines(t *testing.T) {
	conn, err := jsworker.StartInProcess()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	responses := bufio.NewReader(conn)
	exchange := func(request string) string {
		t.Helper()
		if _, err := io.WriteString(conn, request+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := responses.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	exchange(`{"Op":"load","VM":1,"Limits":{},"Scripts":[{"Source":"let n = 0; function count() { return ++n }"}]}`)
	for n := 2; n <= 140; n++ {
		exchange(fmt.Sprintf(`{"Op":"load","VM":%d,"Limits":{}}`, n))
	}
	exchange(`{"Op":"call","VM":1,"Function":"count"}`)
	// Its memory is unknown, so it keeps 128.
	if got, want := exchange(`{"Number":5,"Op":"call","VM":2,"Function":"count","Memory":1,"Closed":[3,4,5,6,7,8,9,10,11]}`), `{"Number":5,"Value":1}`; got != want {
		t.Errorf("got %s, want %s: the least recently used one is that of the step", got, want)
	}
	if got, want := exchange(`{"Op":"trim","Memory":1}`), `{"Number":0,"Lost":[12,13,14]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := exchange(`{"Op":"call","VM":1,"Function":"count"}`), `{"Number":0,"Value":2}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := exchange(`{"Op":"call","VM":12,"Function":"count"}`); !strings.Contains(got, "virtual machine 12 is unknown") {
		t.Errorf("got %s", got)
	}
}

// The worker ends with its input, even in a step that cannot be interrupted.
func TestServe_ProcessEndsWithInput(t *testing.T) {
	p, err := launcher.StartProcess(sandbox.Job{Program: jsworker.Program, Unsandboxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := io.WriteString(p, `{"Op":"run","Code":"Array.prototype.indexOf.call({length: 2**53 - 1}, 1)","Time":3600000000000}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteCloser.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(p.ReadCloser); err != nil || len(text) > 0 {
		t.Errorf("got %q, %v; want the end", text, err)
	}
}

// wireRequest is a request as a fake worker sees it.
type wireRequest struct {
	Number, VM, Memory int
	Op, Function       string
	Closed             []int
}

// fakePool is a pool of workers that answer responds for.
type fakePool struct {
	*jsworker.VMPool

	mu   sync.Mutex
	seen [][]wireRequest // by worker
}

// newFakeVMPool returns a pool of fake workers. An answer of "" closes the connection.
func newFakeVMPool(t *testing.T, answer func(worker int, q wireRequest) string) *fakePool {
	p := new(fakePool)
	p.VMPool = jsworker.NewVMPool(func() (jsworker.Conn, error) {
		client, server := net.Pipe()
		p.mu.Lock()
		worker := len(p.seen)
		p.seen = append(p.seen, nil)
		p.mu.Unlock()
		go func() {
			defer server.Close()
			for lines := bufio.NewScanner(server); lines.Scan(); {
				var q wireRequest
				if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
					t.Error(err)
				}
				p.mu.Lock()
				p.seen[worker] = append(p.seen[worker], q)
				p.mu.Unlock()
				text := answer(worker, q)
				if text == "" {
					return
				}
				if _, err := io.WriteString(server, text+"\n"); err != nil {
					return
				}
			}
		}()
		return fakeConn{Conn: client}, nil
	})
	t.Cleanup(p.Close)
	return p
}

// requests returns what a worker was asked.
func (p *fakePool) requests(worker int) []wireRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[worker]
}

// answerOK is the answer of a worker that works.
func answerOK(_ int, q wireRequest) string {
	return fmt.Sprintf(`{"Number":%d,"Value":%d}`, q.Number, q.VM)
}

func TestVMGroup_RejectsInvalidResponses(t *testing.T) {
	tests := []struct{ name, answer, text string }{
		{"not JSON", "noise", "unexpected response"},
		{"another form", `{"Number":"x"}`, "unexpected response"},
		{"response to another request", `{"Number":2,"Value":1}`, "unexpected response"},
		{"response too large", `{"Number":3,"Value":"` + strings.Repeat("x", jsworker.MaxStep+2<<20) + `"}`, "unexpected response"},
		{"nothing", "", "ended before it responded"},
		{"neither value nor error", `{"Number":3}`, "unexpected response"},
		{"error that a step cannot have", `{"Number":3,"Error":"approval_denied","Message":"m"}`, "unexpected response"},
		{"kind that a script cannot cause", `{"Number":3,"Failure":{"Kind":"cancelled","Message":"m"}}`, "unexpected response"},
		{"unknown kind", `{"Number":3,"Failure":{}}`, "unexpected response"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newFakeVMPool(t, func(worker int, q wireRequest) string {
				if worker == 0 && q.Op == "call" {
					return tt.answer
				}
				return answerOK(worker, q)
			})
			g := p.NewVMGroup(js.Limits{Time: time.Minute})
			v, other := load(t, g), load(t, g)
			got, err := v.CallFunction(t.Context(), "count", nil)
			if got != nil || errcode.CodeOf(err) != errcode.ToolExecutionFailed || !strings.Contains(errcode.Message(err), tt.text) {
				t.Errorf("got %s, %.300v", got, err)
			}
			wantLost(t, other)
			wantLost(t, v)
			wantCall(t, load(t, g), "count", "", "3") // in the next worker
		})
	}
}

// A worker that another process ends in a step loses the machine and does not fail it.
func TestVM_DiscardLosesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		p := newFakeVMPool(t, func(worker int, q wireRequest) string {
			if q.Op == "call" {
				<-held
			}
			return answerOK(worker, q)
		})
		g := p.NewVMGroup(js.Limits{})
		v, other := load(t, g), load(t, g)
		var all sync.WaitGroup
		all.Go(func() { wantLost(t, v) })
		synctest.Wait()
		other.Discard()
		all.Wait()
		close(held)
		p.Close()
	})
}

// Reports of a worker about machines that it does not have, or about the one whose step it was, are
// ignored.
func TestVMGroup_WorkerReportsLostMachines(t *testing.T) {
	p := newFakeVMPool(t, func(_ int, q wireRequest) string {
		return fmt.Sprintf(`{"Number":%d,"Value":0,"Lost":[1,3,99]}`, q.Number)
	})
	g := p.NewVMGroup(js.Limits{})
	gone := make(chan bool, 1)
	first, err := g.Load(t.Context(), func() { gone <- true })
	if err != nil {
		t.Fatal(err)
	}
	second, third := load(t, g), load(t, g)
	<-gone
	wantLost(t, first)
	wantCall(t, third, "count", "", "0")
	wantCall(t, second, "count", "", "0")
	wantLost(t, third)
}

func TestVMGroup_WaitingIsNotPartOfStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeVMPool(t, func(worker int, q wireRequest) string {
			if q.Op == "call" {
				time.Sleep(js.DefaultTime + 900*time.Millisecond)
			}
			return answerOK(worker, q)
		})
		g := p.NewVMGroup(js.Limits{})
		var all sync.WaitGroup
		for range 4 {
			v := load(t, g)
			all.Go(func() { wantCall(t, v, "count", "", fmt.Sprint(jsworker.NumberOf(v))) })
		}
		all.Wait()
		p.Close()
	})
}

func TestVMGroup_WorkerThatHangsIsKilledAfterStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		p := newFakeVMPool(t, func(worker int, q wireRequest) string {
			if q.Op == "call" {
				<-over
			}
			return answerOK(worker, q)
		})
		v, began := load(t, p.NewVMGroup(js.Limits{Time: 2 * time.Second})), time.Now()
		if _, err := v.CallFunction(t.Context(), "count", nil); errcode.CodeOf(err) != errcode.ToolTimeout {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("killed after %v, want a second after the limit", d)
		}
		close(over)
		p.Close()
	})
}

func TestVMGroup_WorkerEndsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeVMPool(t, answerOK)
		g := p.NewVMGroup(js.Limits{})
		gone := make(chan bool, 1)
		v, err := g.Load(t.Context(), func() { gone <- true })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		wantCall(t, v, "count", "", "1")
		time.Sleep(50 * time.Second)
		wantCall(t, v, "count", "", "1")
		began := time.Now()
		<-gone
		if d := time.Since(began); d != time.Minute {
			t.Errorf("ended after %v", d)
		}
		wantLost(t, v)
		wantCall(t, load(t, g), "count", "", "2")
		p.Close()
	})
}

func TestVMGroup_MachineAloneExcludesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeVMPool(t, answerOK)
		g := p.NewVMGroup(js.Limits{})
		other := load(t, g)
		v, err := g.LoadAlone(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan bool)
		go func() { wantCall(t, other, "count", "", "1"); close(done) }()
		synctest.Wait()
		wantCall(t, v, "count", "", "2")
		select {
		case <-done:
			t.Error("the other machine had a step")
		default:
		}
		v.ShareWorker()
		<-done
		wantCall(t, v, "count", "", "2")
		p.Close()
	})
}

// Beyond the fourth worker, the one that was not used for the longest time gives way. One in a
// step does not.
func TestVMPool_ReplacesLeastUsedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		p := newFakeVMPool(t, func(worker int, q wireRequest) string {
			if q.Function == "hold" {
				<-held
			}
			return answerOK(worker, q)
		})
		var machines []*jsworker.VM
		for range 4 {
			machines = append(machines, load(t, p.NewVMGroup(js.Limits{})))
		}
		wantCall(t, machines[0], "count", "", "1")
		fifth := load(t, p.NewVMGroup(js.Limits{}))
		wantLost(t, machines[1])
		wantCall(t, machines[0], "count", "", "1")

		var all sync.WaitGroup
		for _, v := range []*jsworker.VM{machines[0], machines[2], machines[3], fifth} {
			all.Go(func() { wantCall(t, v, "hold", "", "1") })
		}
		synctest.Wait()
		loaded := make(chan bool)
		go func() { load(t, p.NewVMGroup(js.Limits{})); close(loaded) }()
		synctest.Wait()
		select {
		case <-loaded:
			t.Error("a fifth worker started")
		default:
		}
		began := time.Now()
		close(held)
		all.Wait()
		<-loaded
		if d := time.Since(began); d > 0 {
			t.Errorf("the fifth worker started after %v, want as soon as one was not in use", d)
		}
		p.Close()
	})
}

// The workers share 512 MiB. Of its share, each keeps 48 MiB and the limit of one script free. A
// worker with more than its share releases it before another one starts.
func TestVMPool_WorkersShareMemory(t *testing.T) {
	p := newFakeVMPool(t, func(_ int, q wireRequest) string {
		return fmt.Sprintf(`{"Number":%d,"Value":0,"Memory":%d}`, q.Number, 300<<20)
	})
	first := load(t, p.NewVMGroup(js.Limits{}))
	load(t, p.NewVMGroup(js.Limits{Memory: 32 << 20}))
	wantCall(t, first, "count", "", "0")
	got := fmt.Sprint(p.requests(0), p.requests(1))
	want := fmt.Sprintf("[{1 1 %d load  []} {2 0 %d trim  []} {3 1 %d call count []}] [{1 1 %d load  []}]", 400<<20, 144<<20, 144<<20, 176<<20)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestVM_CloseReachesWorkerWithNextRequest(t *testing.T) {
	p := newFakeVMPool(t, answerOK)
	g := p.NewVMGroup(js.Limits{})
	a, b := load(t, g), load(t, g)
	a.Close()
	a.Close()
	wantCall(t, b, "count", "", "2")
	requests := p.requests(0)
	if got := fmt.Sprint(requests[len(requests)-1].Closed); got != "[1]" {
		t.Errorf("got %s, want the closed machine", got)
	}
}

func TestVMGroup_ReportsStartError(t *testing.T) {
	missing := errors.New("no process")
	p := jsworker.NewVMPool(func() (jsworker.Conn, error) { return nil, missing })
	g := p.NewVMGroup(js.Limits{})
	for range 6 { // more than there are places
		if _, err := g.Load(t.Context(), nil); !errors.Is(err, missing) {
			t.Errorf("got %v", err)
		}
	}
	p.Close()
	p.Close()
	if _, err := g.Load(t.Context(), nil); err == nil {
		t.Error("a closed group started a worker")
	}
	if _, err := p.NewVMGroup(js.Limits{}).Load(t.Context(), nil); err == nil {
		t.Error("a closed pool started a worker")
	}
}

// Many agents load, call and close at once, while workers die.
func TestVMGroup_IsSafeForConcurrentUse(t *testing.T) {
	p := newFakeVMPool(t, func(worker int, q wireRequest) string {
		if q.Function == "die" {
			return ""
		}
		return answerOK(worker, q)
	})
	groups := []*jsworker.VMGroup{p.NewVMGroup(js.Limits{}), p.NewVMGroup(js.Limits{})}
	var all sync.WaitGroup
	for agent := range 16 {
		all.Go(func() {
			for i := range 40 {
				load := groups[agent%2].Load
				if i%5 == 0 {
					load = groups[agent%2].LoadAlone
				}
				v, err := load(t.Context(), func() {})
				if err == nil {
					function := "count"
					if agent == 0 && i%10 == 9 {
						function = "die"
					}
					_, err = v.CallFunction(t.Context(), function, nil)
					v.Close()
				}
				if err != nil && agent != 0 && !errors.Is(err, jsworker.ErrLost) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
