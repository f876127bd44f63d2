package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// acts are texts that do something to a terminal, beside the naughty ones.
var acts = []string{"\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\link", "\u009b31m", "\u0085", "\u2028", "\u202egnp.exe", "\ufeff", "\u200b", "a\rb", "a\nb\n", "\x7f\b\b", "\U000e0041", "\u061c", "\xff\xfe"}

// hostile lists the strings that are shown and given here.
func hostile() []string { return append(corpus.NaughtyStrings(), acts...) }

// events are what a task may show, with a string wherever one goes.
func events(s string) []journal.Event {
	raw, err := json.Marshal(map[string]string{"text": s, "k" + s: s})
	if err != nil {
		panic(err)
	}
	agent := identity.AgentID("agent " + s)
	bodies := []journal.Body{
		journal.AgentSpawned{Parent: "p", Tools: []string{"read_file"}},
		journal.ToolCall{Tool: s, Args: raw, Decision: journal.Denied, Code: errcode.UnknownTool, Reason: "there is no tool " + s},
		journal.ToolCall{Tool: s, Args: raw},
		journal.ToolError{Call: "2", Tool: s, Code: errcode.ToolExecutionFailed, Result: raw},
		journal.MessageSent{Message: model.Message{From: string(agent), To: "user", Payload: raw}, Due: s},
		journal.MessageSent{Message: model.Message{From: "user", To: s, Payload: raw}},
		journal.StateTransition{From: s, To: s},
		journal.ModelDelta{Text: s, Tool: s},
		journal.ModelDelta{Note: s},
		journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, Plan: []model.Step{{Tool: s, Reason: s}}}},
		journal.ModelAnswered{Answer: model.Answer{PlanError: s, Text: s}},
		journal.Failed{Code: errcode.LLMCallFailed, Message: s},
		journal.AgentTerminated{Reason: s},
	}
	var list []journal.Event
	for i, b := range bodies {
		list = append(list, journal.Event{Seq: uint64(i + 1), At: time.Unix(0, 0).UTC(), Stream: agent, Agent: agent, Role: s, Task: "t", Body: b})
	}
	return list
}

// Whatever agents write, what is shown of it has nothing that acts on a
// terminal: not in lines, not in the tree, not as JSON; and JSON is one event
// a line.
func TestNothingThatIsShownActsOnATerminal(t *testing.T) {
	for _, s := range hostile() {
		var lines, tree, ndjson strings.Builder
		views := map[*strings.Builder]view{
			&lines:  newLineView(newScreen(&lines), false),
			&tree:   &treeView{lines: newLineView(&terminal{out: &tree, width: 80}, false)},
			&ndjson: jsonView{&ndjson},
		}
		for _, e := range events(s) {
			for out, v := range views {
				if err := v.event(e); err != nil {
					t.Fatal(err)
				}
				wantInert(t, s, strings.ReplaceAll(withoutMoves(out.String()), "\n", ""))
			}
		}
		if n := strings.Count(ndjson.String(), "\n"); n != len(events(s)) {
			t.Errorf("%q: %d lines of JSON, want %d", s, n, len(events(s)))
		}
		for line := range strings.Lines(ndjson.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q: %q is no JSON", s, line)
			}
		}
		if lines.Len() < 100 || tree.Len() < 100 {
			t.Fatalf("%q: hardly anything is shown", s)
		}
	}
}

// withoutMoves takes out what the tree itself does to a terminal.
func withoutMoves(text string) string {
	for n := range 100 {
		text = strings.ReplaceAll(text, fmt.Sprintf("\x1b[%dA\x1b[J", n), "")
	}
	return text
}

// wantInert wants text of printable characters.
func wantInert(t *testing.T, given, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%q: %q is no UTF-8", given, text)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			t.Fatalf("%q: %U is shown as it is in %q", given, r, text)
		}
	}
}

// Whatever stands on a command line, the program ends with a status and says
// why in text that does nothing to a terminal.
func TestHostileStringsOnTheCommandLine(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	forms := [][]string{
		{"role", "show", "%"}, {"agent", "show", "%"}, {"task", "show", "%"}, {"tool", "show", "%"}, {"group", "show", "%"}, {"artifact", "show", "%"},
		{"can", "--role", "%", "%"}, {"role", "create", "%", "--prompt", "%", "--none"}, {"--%"}, {"%"}, {"agent", "list", "--task", "%"}, {"task", "list", "--status", "%"},
	}
	ran := map[int]int{}
	for i, s := range hostile() {
		args := []string{"--data", data}
		if i%2 == 0 {
			args = append(args, "--json")
		}
		for _, word := range forms[i%len(forms)] {
			args = append(args, strings.ReplaceAll(word, "%", s))
		}
		status, out := inProcess(t.Context(), args)
		ran[status]++
		if status < 0 || status > 2 || status != 0 && out == "" {
			t.Errorf("%q: status %d, said %q", args, status, out)
		}
		wantInert(t, s, strings.ReplaceAll(out, "\n", ""))
	}
	if ran[0] == 0 || ran[1] == 0 || ran[2] == 0 {
		t.Errorf("got statuses %v, want some of each", ran)
	}
}

// inProcess runs a command line and gives all it wrote.
func inProcess(ctx context.Context, args []string) (status int, out string) {
	var both strings.Builder
	c := &common{in: strings.NewReader(""), out: &both, err: &both, env: func(string) (string, bool) { return "", false }}
	return run(ctx, c, args), both.String()
}

// A task's result is passed on as it is, but to a terminal.
func TestAResultIsPassedOnAsItIs(t *testing.T) {
	for _, s := range hostile() {
		if !utf8.ValidString(s) {
			continue // no JSON text
		}
		var b strings.Builder
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		c := &common{out: &b, err: io.Discard}
		if err := printResult(c, doneTask(raw)); err != nil && !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(b.String(), "\n"); got != strings.TrimSuffix(s, "\n") {
			t.Errorf("got %q, want %q", got, s)
		}
		wantInert(t, s, strings.ReplaceAll(cleanLines(b.String()), "\n", ""))
	}
}

func doneTask(result json.RawMessage) org.Task { return org.Task{Status: org.Done, Result: result} }
