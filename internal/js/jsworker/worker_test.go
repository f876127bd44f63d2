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
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js/jsworker"
)

var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(map[string]sandbox.Program{jsworker.Program: jsworker.Serve})
	os.Exit(m.Run())
}

// newPool returns a pool of real processes, sandboxed where the system supports it.
func newPool(t *testing.T) *jsworker.Pool {
	t.Helper()
	job := sandbox.Job{Program: jsworker.Program}
	if _, err := launcher.Run(t.Context(), sandbox.Job{Argv: []string{"true"}}); err != nil {
		t.Log("not sandboxed: ", err)
		job.Unsandboxed = true
	}
	p := jsworker.New(func() (jsworker.Conn, error) { return launcher.StartProcess(job) })
	t.Cleanup(p.Close)
	return p
}

func TestPool_Run(t *testing.T) {
	p := newPool(t)
	tests := []struct {
		name, code, input, want string
		err                     errcode.Code
	}{
		{"value", "return input.reduce((a, b) => a + b)", "[1,2,3]", "6", ""},
		{"empty code", "", "", "null", ""},
		{"promise", "return await Promise.resolve(7)", "", "7", ""},
		{"throw", "throw new Error('no')", "", "", errcode.ToolExecutionFailed},
		{"result too large", "return 'x'.repeat(300000)", "", "", errcode.ResultTooLarge},
		{"long result of escaped characters", "return '\\u0001'.repeat(30000)", "", `"` + strings.Repeat(`\u0001`, 30000) + `"`, ""},
		{"result is not JSON", "return () => 1", "", "", errcode.NotSerializable},
		{"too much memory", "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)", "", "", errcode.ToolExecutionFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.Run(t.Context(), jsworker.Request{Member: "me", Code: tt.code, Input: json.RawMessage(tt.input), Time: time.Minute})
			if string(got) != tt.want || errcode.CodeOf(err) != tt.err {
				t.Errorf("got %.100s, %v; want %.100s, %s", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestPool_KillsScriptsThatCannotBeInterrupted(t *testing.T) {
	p := newPool(t)
	tests := []struct{ name, code string }{
		{"loop", "for (;;);"},
		{"search in a sparse array", "return Array.prototype.indexOf.call({length: 2**53 - 1}, 1)"},
		{"search in a function", "const f = () => 1; Object.defineProperty(f, 'length', {value: 2**53 - 1}); return Array.prototype.indexOf.call(f, 1)"},
		{"large numbers", "const b = 3n ** 20000n; for (;;) b * b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Run(t.Context(), jsworker.Request{Code: tt.code, Time: 50 * time.Millisecond})
			if errcode.CodeOf(err) != errcode.ToolTimeout {
				t.Errorf("got %v", err)
			}
			if got, err := p.Run(t.Context(), jsworker.Request{Code: "return 1"}); string(got) != "1" {
				t.Errorf("got %s, %v from the next script", got, err)
			}
		})
	}
	t.Run("cancelled script", func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
		if _, err := p.Run(ctx, jsworker.Request{Code: "for (;;);", Time: time.Minute}); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
}

// fakeConn is the connection to a fake worker.
type fakeConn struct{ net.Conn }

func (f fakeConn) Close() { f.Conn.Close() }

// newFakePool returns a pool whose workers respond to each request with the text that answer
// returns for its number, and a function that returns the scripts of each worker.
func newFakePool(t *testing.T, answer func(number int) string) (*jsworker.Pool, func() [][]string) {
	t.Helper()
	var mu sync.Mutex
	var all [][]string
	p := jsworker.New(func() (jsworker.Conn, error) {
		client, server := net.Pipe()
		mu.Lock()
		worker := len(all)
		all = append(all, nil)
		mu.Unlock()
		go func() {
			for lines := bufio.NewScanner(server); lines.Scan(); {
				var q struct {
					Number int
					Code   string
				}
				if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
					t.Error(err)
				}
				mu.Lock()
				all[worker] = append(all[worker], q.Code)
				mu.Unlock()
				if _, err := io.WriteString(server, answer(q.Number)+"\n"); err != nil {
					return
				}
			}
		}()
		return fakeConn{Conn: client}, nil
	})
	t.Cleanup(p.Close)
	return p, func() [][]string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestPool_MembersNeverShareWorker(t *testing.T) {
	p, scriptsByWorker := newFakePool(t, func(n int) string { return fmt.Sprintf(`{"Number":%d,"Value":1}`, n) })
	var all sync.WaitGroup
	for member := range 8 {
		all.Go(func() {
			for range 20 {
				name := fmt.Sprint(member)
				if _, err := p.Run(t.Context(), jsworker.Request{Member: name, Code: name}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	total := 0
	for i, scripts := range scriptsByWorker() {
		total += len(scripts)
		for _, s := range scripts {
			if s != scripts[0] {
				t.Fatalf("worker %d ran the scripts %v", i, scripts)
			}
		}
	}
	if total != 160 {
		t.Errorf("got %d scripts, want 160", total)
	}
}

func TestPool_IsFairToMembers(t *testing.T) {
	p := newPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	var blockers sync.WaitGroup
	for range 50 {
		blockers.Go(func() {
			if _, err := p.Run(ctx, jsworker.Request{Member: "blocker", Code: "for (;;);", Time: time.Hour}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	for range 3 {
		if got, err := p.Run(t.Context(), jsworker.Request{Member: "me", Code: "return 1"}); string(got) != "1" {
			t.Errorf("got %s, %v", got, err)
		}
	}
	cancel()
	blockers.Wait()
}

// Many members of one owner leave places for another owner.
func TestPool_IsFairToOwners(t *testing.T) {
	p := newPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	var blockers sync.WaitGroup
	for i := range 50 {
		blockers.Go(func() {
			r := jsworker.Request{Owner: "blocker", Member: fmt.Sprint("blocker ", i), Code: "for (;;);", Time: time.Hour}
			if _, err := p.Run(ctx, r); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	waiting, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for range 3 {
		if got, err := p.Run(waiting, jsworker.Request{Owner: "me", Member: "my agent", Code: "return 1"}); string(got) != "1" {
			t.Errorf("got %s, %v", got, err)
		}
	}
	cancel()
	blockers.Wait()
}

func TestPool_RejectsInvalidResponses(t *testing.T) {
	tests := []struct{ name, answer string }{
		{"not JSON", "noise"},
		{"response to another request", `{"Number":7,"Value":1}`},
		{"response too large", `{"Number":1,"Value":"` + strings.Repeat("x", 2_000_000) + `"}`},
		{"neither value nor error", `{"Number":1}`},
		{"error code that a script cannot cause", `{"Number":1,"Error":"approval_denied","Message":"m"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newFakePool(t, func(int) string { return tt.answer })
			got, err := p.Run(t.Context(), jsworker.Request{Code: "return 1"})
			if got != nil || errcode.CodeOf(err) != errcode.ToolExecutionFailed {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// The cause of an internal error of a worker is in an error without a code, which is logged
// and not shown. It has one line of limited length, since the worker is not trusted.
func TestPool_ReportsCauseOfInternalError(t *testing.T) {
	p, _ := newFakePool(t, func(int) string {
		return `{"Number":1,"Error":"internal","Message":"m","Cause":"no memory\nfor an engine` + strings.Repeat("x", 5000) + `"}`
	})
	_, err := p.Run(t.Context(), jsworker.Request{Code: "return 1"})
	if errcode.CodeOf(err) != errcode.Internal || !strings.Contains(fmt.Sprint(err), "no memory for an engine") || len(err.Error()) > 1200 {
		t.Errorf("got %v", err)
	}
	if text := errcode.Message(err); strings.Contains(text, "memory") {
		t.Errorf("got message %q", text)
	}
}

func TestPool_ReportsStartError(t *testing.T) {
	missing := errors.New("no sandbox")
	p := jsworker.New(func() (jsworker.Conn, error) { return nil, missing })
	if _, err := p.Run(t.Context(), jsworker.Request{Code: "return 1"}); !errors.Is(err, missing) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkPoolRun(b *testing.B) {
	p := jsworker.New(func() (jsworker.Conn, error) { return launcher.StartProcess(sandbox.Job{Program: jsworker.Program}) })
	defer p.Close()
	for b.Loop() {
		if _, err := p.Run(b.Context(), jsworker.Request{Code: "return input + 1", Input: json.RawMessage("1")}); err != nil {
			b.Fatal(err)
		}
	}
}
