package human_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/human"
)

// terminal is a Model whose input the test types.
type terminal struct {
	*testing.T
	model *human.Model
	keys  *io.PipeWriter

	mu  sync.Mutex // guards out
	out strings.Builder
}

// atTerminal runs a test in a synctest bubble, which fails if a goroutine leaks.
func atTerminal(t *testing.T, test func(t *testing.T, tm *terminal)) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		tm := &terminal{T: t, keys: keys}
		tm.model = human.New(in, tm, nil)
		test(t, tm)
		keys.Close()
	})
}

func (tm *terminal) Write(text []byte) (int, error) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.out.Write(text)
}

// screen returns what was printed since its last call, once all goroutines wait.
func (tm *terminal) screen() string {
	synctest.Wait()
	tm.mu.Lock()
	defer tm.mu.Unlock()
	defer tm.out.Reset()
	return tm.out.String()
}

func (tm *terminal) types(line string) {
	tm.Helper()
	if _, err := io.WriteString(tm.keys, line+"\n"); err != nil {
		tm.Error(err)
	}
	synctest.Wait()
}

// asks starts a request of an agent and returns when it waits. The channel receives
// its outcome.
func (tm *terminal) asks(ctx context.Context, role string) <-chan string {
	done := make(chan string, 1)
	go func() {
		a, err := ask(tm.T, ctx, tm.model, requestOf(role))
		if err != nil {
			done <- err.Error()
			return
		}
		done <- fmt.Sprint(a.Finish, " ", a.Text)
	}()
	synctest.Wait()
	return done
}

func (tm *terminal) wants(done <-chan string, want string) {
	tm.Helper()
	select {
	case got := <-done:
		if got != want {
			tm.Errorf("outcome %q, want %q", got, want)
		}
	default:
		tm.Errorf("no outcome, want %q", want)
	}
}

func (tm *terminal) shows(parts ...string) {
	tm.Helper()
	rest := tm.screen()
	all := rest
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			tm.Fatalf("%q is missing or out of order:\n%s", part, all)
		}
		rest = after
	}
}

func TestModel_RequestsAreShownInOrder(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		first := tm.asks(t.Context(), "analyst")
		second := tm.asks(t.Context(), "writer")
		third := tm.asks(t.Context(), "editor")
		if got := tm.screen(); !strings.HasSuffix(got, "analyst> ") || strings.Contains(got, "writer") || strings.Contains(got, "editor") {
			t.Errorf("another request is shown with the first:\n%s", got)
		}
		tm.types("one")
		tm.wants(first, "end one")
		tm.shows("== writer asks", "writer> ")
		tm.types("/wait")
		tm.wants(second, "wait ")
		tm.shows("== editor asks", "editor> ")
		tm.types("/say three")
		tm.wants(third, "continue three")
	})
}

func TestModel_CancelledRequestLeavesTheNextLine(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		first := tm.asks(ctx, "analyst")
		cancel()
		synctest.Wait()
		tm.wants(first, context.Canceled.Error())
		tm.shows("analyst> \n-- the request of analyst is cancelled: context canceled\n")
		second := tm.asks(t.Context(), "writer")
		tm.shows("== writer asks", "writer> ")
		tm.types("mine")
		tm.wants(second, "end mine")
	})
}

func TestModel_CancelsWhileArgumentsAreTyped(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := toolRequest(`{"type":"object","properties":{"a":{"type":"string"}}}`)
		done := make(chan error, 1)
		go func() {
			_, err := ask(t, ctx, tm.model, r)
			done <- err
		}()
		synctest.Wait()
		tm.types("1")
		tm.types(`{"a":`)
		tm.shows("arguments as JSON", "... ")
		cancel(errors.New("the agent is terminated"))
		if err := <-done; err != context.Canceled {
			t.Errorf("error %v, want that of the context", err)
		}
		second := tm.asks(t.Context(), "writer")
		tm.types("mine")
		tm.wants(second, "end mine")
	})
}

// A line typed while no request is shown was meant for the cancelled one.
func TestModel_LineTypedAfterCancellationIsNotUsed(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		tm.asks(ctx, "analyst")
		cancel()
		synctest.Wait()
		tm.types("delete\x1b[2J it")
		second := tm.asks(t.Context(), "writer")
		tm.shows("-- typed before the request below, not used:\n  | delete\uFFFD[2J it\n", "== writer asks")
		tm.types("mine")
		tm.wants(second, "end mine")
	})
}

func TestModel_CancelsARequestThatIsNotShownYet(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		first := tm.asks(t.Context(), "analyst")
		ctx, cancel := context.WithCancel(t.Context())
		second := tm.asks(ctx, "writer")
		third := tm.asks(t.Context(), "editor")
		cancel()
		synctest.Wait()
		tm.wants(second, context.Canceled.Error())
		tm.types("one")
		tm.wants(first, "end one")
		tm.types("three")
		tm.wants(third, "end three")
		if got := tm.screen(); strings.Contains(got, "writer") {
			t.Errorf("the cancelled request is shown:\n%s", got)
		}
	})
}

func TestModel_CancelledContextShowsNothing(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tm.wants(tm.asks(ctx, "analyst"), context.Canceled.Error())
		if got := tm.screen(); got != "" {
			t.Errorf("the screen has %q", got)
		}
	})
}

func TestModel_EndOfInputFailsAllRequests(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		tm.asks(ctx, "cancelled")
		cancel()
		synctest.Wait()
		tm.keys.Close()
		for _, role := range []string{"analyst", "writer"} {
			var got string
			select {
			case got = <-tm.asks(t.Context(), role):
			default:
			}
			if !strings.HasPrefix(got, "llm_call_failed: the terminal input ended before an answer") {
				t.Errorf("%s: outcome %q", role, got)
			}
		}
	})
}

// countingReader counts its Read calls.
type countingReader struct {
	io.Reader
	reads atomic.Int32
}

func (c *countingReader) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Reader.Read(p)
}

func TestModel_CancelledRequestsShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		counted := &countingReader{Reader: in}
		m := human.New(counted, io.Discard, nil)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := ask(t, ctx, m, requestOf("analyst")); err != context.DeadlineExceeded {
				t.Errorf("error %v, want that of the context", err)
			}
			cancel()
		}
		if n := counted.reads.Load(); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
	})
}

// eventLog is a terminal that records each Write, lock and unlock.
type eventLog struct{ events []string }

func (l *eventLog) Write(text []byte) (int, error) {
	l.events = append(l.events, string(text))
	return len(text), nil
}

func (l *eventLog) lock() func() {
	l.events = append(l.events, "lock")
	return func() { l.events = append(l.events, "unlock") }
}

func TestModel_WritesEachPromptOnceUnderTheLock(t *testing.T) {
	var log eventLog
	m := human.New(strings.NewReader("1\n\n"), &log, &human.Options{Lock: log.lock})
	r := requestOf("analyst")
	r.Tools = []string{"look"}
	if a, err := ask(t, t.Context(), m, r); err != nil || len(a.Calls) != 1 {
		t.Fatalf("answer %v, error %v; want a call", a, err)
	}
	_, err := ask(t, t.Context(), m, r)
	wantLasting(t, err, io.EOF)
	var starts []string
	for _, text := range log.events {
		line, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
		starts = append(starts, line)
	}
	want := []string{
		"lock", "== analyst asks", "call look", "unlock",
		"lock", "== analyst asks", "", "unlock",
	}
	if diff := cmp.Diff(want, starts); diff != "" {
		t.Error(diff)
	}
}

func TestOptions_NameIsShownForAgentsAndSenders(t *testing.T) {
	var out strings.Builder
	names := map[string]string{"a1 worker": "worker#2", "a0 ": "boss"}
	m := human.New(strings.NewReader("done\n"), &out, &human.Options{
		Name: func(id identity.AgentID, role string) string { return names[string(id)+" "+role] },
	})
	from := func(id string) model.Item {
		return model.Item{Message: &model.Message{From: id, Payload: []byte(`"hello"`)}}
	}
	if _, err := ask(t, t.Context(), m, requestOf("worker", from("a0"), from("user"), from("a9"))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"== worker#2 asks\n", "message from boss\n", "message from user\n", "message from a9\n", "worker#2> "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q:\n%s", want, out.String())
		}
	}
}
