package cmd

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// terminalSequences are texts that control a terminal, in addition to corpus.NaughtyStrings.
var terminalSequences = []string{"\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\link", "\u009b31m", "\u0085", "\u2028", "\u202egnp.exe", "\ufeff", "\u200b", "a\rb", "a\nb\n", "\x7f\b\b", "\U000e0041", "\u061c", "\xff\xfe"}

// hostileStrings lists the strings that the tests print and pass as arguments.
func hostileStrings() []string { return append(corpus.NaughtyStrings(), terminalSequences...) }

// sampleEvents returns events of a task that contain a string in every text field.
func sampleEvents(s string) []journal.Event {
	raw, err := json.Marshal(map[string]string{"text": s, "k" + s: s})
	if err != nil {
		panic(err)
	}
	agent := identity.AgentID("agent " + s)
	bodies := []journal.EventBody{
		journal.AgentSpawned{Parent: "p", Tools: []string{"read_file"}},
		journal.ToolCall{Tool: s, Args: raw, Decision: journal.Denied, Code: errcode.UnknownTool, Reason: "there is no tool " + s},
		journal.ToolCall{Tool: s, Args: raw},
		journal.ToolError{Call: "2", Tool: s, Code: errcode.ToolExecutionFailed, Result: raw},
		journal.MessageSent{Message: model.Message{From: string(agent), To: "user", Payload: raw}, Due: s},
		journal.MessageSent{Message: model.Message{From: "user", To: s, Payload: raw}},
		journal.StateTransition{From: s, To: s},
		journal.BudgetWarning{Owner: agent, Quantity: s, Used: 8, Limit: 10},
		journal.ModelDelta{Text: s, Tool: s},
		journal.ModelDelta{Note: s},
		journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishPlan, Plan: []model.PlanStep{{Tool: s, Reason: s}}}},
		journal.ModelAnswered{Answer: model.Answer{PlanError: s, Text: s}},
		journal.TurnFailed{Code: errcode.LLMCallFailed, Message: s},
		journal.AgentTerminated{Reason: s},
	}
	var list []journal.Event
	for i, b := range bodies {
		list = append(list, journal.Event{Seq: uint64(i + 1), At: time.Unix(0, 0).UTC(), Stream: agent, Agent: agent, Role: s, Task: "t", Body: b})
	}
	return list
}

// Whatever agents write, no view prints control characters: not as lines, not as a tree, and
// not as JSON, which has one event per line.
func TestView_SanitizesEvents(t *testing.T) {
	for _, s := range hostileStrings() {
		var lines, tree, ndjson strings.Builder
		views := map[*strings.Builder]view{
			&lines:  newLineView(newTerminal(&lines)),
			&tree:   newTreeView(&terminal{out: &tree, size: func() screenSize { return screenSize{80, 24} }}, time.Now),
			&ndjson: jsonView{&ndjson},
		}
		for _, e := range sampleEvents(s) {
			for out, v := range views {
				before := out.Len()
				if err := v.show(e); err != nil {
					t.Fatal(err)
				}
				if drawn, ok := v.(*treeView); ok {
					_ = drawn.draw("")
				}
				wantPrintable(t, s, strings.ReplaceAll(stripSequences(out.String()[before:]), "\n", ""))
			}
		}
		if n := strings.Count(ndjson.String(), "\n"); n != len(sampleEvents(s)) {
			t.Errorf("%q: %d lines of JSON, want %d", s, n, len(sampleEvents(s)))
		}
		for line := range strings.Lines(ndjson.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q: %q is not JSON", s, line)
			}
		}
		if lines.Len() < 100 || tree.Len() < 100 {
			t.Fatalf("%q: hardly any output", s)
		}
	}
}

// wantPrintable checks that a text has printable characters only.
func wantPrintable(t *testing.T, given, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%q: %q is not UTF-8", given, text)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			t.Fatalf("%q: unprintable %U in %q", given, r, text)
		}
	}
}

// Whatever the arguments are, the program exits with a status and an error without control
// characters.
func TestRun_SanitizesHostileArguments(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	forms := [][]string{
		{"role", "show", "%"}, {"agent", "show", "%"}, {"task", "show", "%"}, {"tool", "show", "%"}, {"group", "show", "%"}, {"artifact", "show", "%"},
		{"can", "--role", "%", "%"}, {"role", "create", "%", "--use-none", "--dry-run"}, {"role", "create", "clerk", "--prompt", "%", "--dry-run"}, {"role", "create", "clerk", "--description", "%", "--dry-run"}, {"--%"}, {"%"}, {"agent", "list", "--task", "%"}, {"task", "list", "--status", "%"},
	}
	ran := map[int]int{}
	for i, s := range short.SampleList(t, 20*len(forms), hostileStrings()) {
		args := []string{"--data", data}
		if i/len(forms)%2 == 0 {
			args = append(args, "--json")
		}
		for _, word := range forms[i%len(forms)] {
			args = append(args, strings.ReplaceAll(word, "%", s))
		}
		status, out := runInProcess(t.Context(), args)
		ran[status]++
		if status < 0 || status > 2 || status != 0 && out == "" {
			t.Errorf("%q: status %d, output %q", args, status, out)
		}
		wantPrintable(t, s, strings.ReplaceAll(out, "\n", ""))
	}
	if ran[0] == 0 || ran[1] == 0 || ran[2] == 0 {
		t.Errorf("got statuses %v, want some of each", ran)
	}
}

// runInProcess runs a command line and returns everything it wrote.
func runInProcess(ctx context.Context, args []string) (status int, out string) {
	var both strings.Builder
	c := &common{in: strings.NewReader(""), out: &both, err: &both, env: func(string) (string, bool) { return "", false }}
	return run(ctx, c, args), both.String()
}

// A result is printed unchanged, except to a terminal.
func TestPrintResult_KeepsText(t *testing.T) {
	for _, s := range hostileStrings() {
		if !utf8.ValidString(s) {
			continue // cannot be a JSON string
		}
		var b strings.Builder
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		c := &common{out: &b, err: io.Discard}
		if err := printResult(c, org.TaskEnd{Status: org.Done, Result: raw}); err != nil && !errors.Is(err, errReported) {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(b.String(), "\n"); got != strings.TrimSuffix(s, "\n") {
			t.Errorf("got %q, want %q", got, s)
		}
		wantPrintable(t, s, strings.ReplaceAll(textutil.SanitizeLines(b.String()), "\n", ""))
	}
}
