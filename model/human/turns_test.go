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

// terminal is a Model with somebody at its keyboard.
type terminal struct {
	*testing.T
	model *human.Model
	keys  *io.PipeWriter

	mu  sync.Mutex // guards out
	out strings.Builder
}

// atTerminal runs a test in a bubble, which fails it if a goroutine stays.
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

// screen gives what was printed since it was last asked, when all is quiet.
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

// asks lets an agent ask, and returns when it waits.
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
			tm.Fatalf("%q is not shown in its place:\n%s", part, all)
		}
		rest = after
	}
}

func TestAgentsAreAnsweredOneAfterTheOther(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		first := tm.asks(t.Context(), "analyst")
		second := tm.asks(t.Context(), "writer")
		third := tm.asks(t.Context(), "editor")
		if got := tm.screen(); !strings.HasSuffix(got, "analyst> ") || strings.Contains(got, "writer") || strings.Contains(got, "editor") {
			t.Errorf("the first who asks does not have the terminal alone:\n%s", got)
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

func TestAQuestionThatIsVoidLeavesTheNextLineToTheNextQuestion(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		first := tm.asks(ctx, "analyst")
		cancel()
		synctest.Wait()
		tm.wants(first, context.Canceled.Error())
		tm.shows("analyst> \n-- the question of analyst is void: context canceled\n")
		second := tm.asks(t.Context(), "writer")
		tm.shows("== writer asks", "writer> ")
		tm.types("mine")
		tm.wants(second, "end mine")
	})
}

func TestAQuestionIsVoidWhileACallIsFilledIn(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := oneTool(`{"type":"object","properties":{"a":{"type":"string"}}}`)
		done := make(chan error, 1)
		go func() {
			_, err := ask(t, ctx, tm.model, r)
			done <- err
		}()
		synctest.Wait()
		tm.types("1")
		tm.shows("a = ")
		cancel(errors.New("the agent is terminated"))
		if err := <-done; err != context.Canceled {
			t.Errorf("error %v, want that of the context", err)
		}
		second := tm.asks(t.Context(), "writer")
		tm.types("mine")
		tm.wants(second, "end mine")
	})
}

// What was typed when nobody asked was meant for the question that is void: it
// answers no other agent.
func TestWhatIsTypedForAVoidQuestionAnswersNoOther(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		tm.asks(ctx, "analyst")
		cancel()
		synctest.Wait()
		tm.types("delete\x1b[2J it")
		second := tm.asks(t.Context(), "writer")
		tm.shows("-- this was typed before the question below, and is not used:\n  | delete\uFFFD[2J it\n", "== writer asks")
		tm.types("mine")
		tm.wants(second, "end mine")
	})
}

func TestAnAgentThatWaitsForItsTurnMayGiveUp(t *testing.T) {
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
			t.Errorf("a question is shown that nobody was asked:\n%s", got)
		}
	})
}

func TestAQuestionThatIsVoidFromTheStartIsNotShown(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tm.wants(tm.asks(ctx, "analyst"), context.Canceled.Error())
		if got := tm.screen(); got != "" {
			t.Errorf("the screen has %q", got)
		}
	})
}

func TestThePersonLeavesWhileSeveralWait(t *testing.T) {
	atTerminal(t, func(t *testing.T, tm *terminal) {
		ctx, cancel := context.WithCancel(t.Context())
		tm.asks(ctx, "void")
		cancel()
		synctest.Wait()
		tm.keys.Close() // meant for nobody: nothing is left to be read
		for _, role := range []string{"analyst", "writer"} {
			var got string
			select {
			case got = <-tm.asks(t.Context(), role):
			default:
			}
			if !strings.HasPrefix(got, "llm_call_failed: the person who answered at the terminal left") {
				t.Errorf("%s: outcome %q", role, got)
			}
		}
	})
}

// counting is an input that counts how often it was read, and never answers.
type counting struct {
	io.Reader
	reads atomic.Int32
}

func (c *counting) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Reader.Read(p)
}

func TestVoidQuestionsShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer keys.Close()
		counted := &counting{Reader: in}
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

// note is a terminal that keeps each Write, and who has it alone when.
type note struct{ list []string }

func (n *note) Write(text []byte) (int, error) {
	n.list = append(n.list, string(text))
	return len(text), nil
}

func (n *note) alone() func() {
	n.list = append(n.list, "(alone")
	return func() { n.list = append(n.list, "over)") }
}

func TestAQuestionIsOneWriteOfOneWhoIsAlone(t *testing.T) {
	var n note
	m := human.New(strings.NewReader("1\n\n\n"), &n, &human.Options{Lock: n.alone})
	r := requestOf("analyst")
	r.Tools = []string{"look"}
	if a, err := ask(t, t.Context(), m, r); err != nil || len(a.Calls) != 1 {
		t.Fatalf("answer %v, error %v; want a call", a, err)
	}
	_, err := ask(t, t.Context(), m, r)
	wantLasting(t, err, io.EOF)
	var starts []string
	for _, text := range n.list {
		line, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
		starts = append(starts, line)
	}
	want := []string{
		"(alone", "== analyst asks", "arguments as a JSON object on one line, enter = {}, /back: ", "call look", "over)",
		"(alone", "== analyst asks", "", "over)",
	}
	if diff := cmp.Diff(want, starts); diff != "" {
		t.Error(diff)
	}
}

func TestAgentsHaveTheNamesTheyHaveElsewhere(t *testing.T) {
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
