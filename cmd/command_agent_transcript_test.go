package cmd

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// times matches what differs each time in a transcript.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|[0-9a-f]{8}-[0-9a-f-]{27}`)

func TestAgentTranscript(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	got := times.ReplaceAllString(mustRun(t, dir, "agent", "transcript", "root"), "*")
	want := `root  agent *  task *  finished

*  message from user
    go

*  answer
    → 1 run_command {"command":"true"}

*  1 run_command denied: tool_not_available (RULE): tool run_command is not available to this role

*  answer
    → 1 create_role {"name":"clerk","rolePrompt":"XXX…
    (cut; the text has 3077 bytes, --full shows them)

*  1 create_role result
    RESULT
    (cut; the text has N bytes, --full shows them)

*  answer
    plain
`
	got = regexp.MustCompile(`x{100,}`).ReplaceAllString(got, "XXX")
	got = regexp.MustCompile(`tool_not_available \([^)]+\)`).ReplaceAllString(got, "tool_not_available (RULE)")
	got = regexp.MustCompile(`(result\n    ).*`).ReplaceAllString(got, "${1}RESULT")
	got = regexp.MustCompile(`(RESULT\n.*has )\d+`).ReplaceAllString(got, "${1}N")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if full := mustRun(t, dir, "agent", "transcript", "root", "--full"); !strings.Contains(full, strings.Repeat("x", 3000)) || strings.Contains(full, "(cut") {
		t.Errorf("--full is cut:\n%s", full)
	}
}

// With --json a transcript has the events of the conversation, not cut.
func TestAgentTranscript_JSON(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	var list struct{ Items []journal.Event }
	if err := json.Unmarshal([]byte(mustRun(t, dir, "agent", "transcript", "root", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range list.Items {
		types = append(types, string(e.Body.EventType()))
	}
	if got, want := strings.Join(types, " "), "message_taken model_answered tool_call tool_error model_answered tool_call tool_result model_answered"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, args := range [][]string{{"agent", "transcript", "nobody"}, {"agent", "transcript", "nobody", "--json"}, {"agent", "abort", "nobody"}} {
		if status, stdout, stderr := runCommand(t, dir, args...); status != 1 || stdout != "" || !strings.Contains(stderr, "agent_not_found") {
			t.Errorf("%v: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
	if status, _, stderr := runCommand(t, dir, "agent", "abort", "root"); status != 1 || !strings.Contains(stderr, "the agent is not active") {
		t.Errorf("abort of an idle agent: status %d, %q", status, stderr)
	}
}

// Whatever a conversation contains, its transcript has printable lines.
func TestTranscript_SanitizesEvents(t *testing.T) {
	for _, s := range short.SampleList(t, 100, hostileStrings()) {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, full := range []bool{false, true} {
			var out bytes.Buffer
			view := newTranscript(&out, full)
			for _, body := range []journal.EventBody{
				journal.MessageReceived{Message: model.Message{From: s, FromRole: s, Payload: raw}},
				journal.ModelAnswered{Answer: model.Answer{Text: s, Plan: []model.PlanStep{{Tool: s, Reason: s}}, PlanError: s, Calls: []model.Call{{ID: "c", Name: s, Args: raw}}}},
				journal.ModelAnswered{Answer: model.Answer{Value: raw, Calls: []model.Call{{ID: "c", Name: s, Args: []byte(s)}}}},
				journal.ToolCall{Call: "c", Tool: s, Decision: journal.Denied, Code: errcode.UnknownTool, Rule: s, Reason: s},
				journal.ToolResult{Call: "c", Tool: s, Result: raw}, journal.ToolResult{Call: "c", Tool: s, Result: contentResult(t, s)}, journal.ToolError{Call: "d", Tool: s, Code: errcode.Code(s), Result: raw},
				journal.StateTransition{To: s}, journal.ContextCompressed{Summary: s}, journal.TurnFailed{Message: s}, journal.AgentTerminated{Reason: s},
			} {
				if err := view.print(journal.Event{Body: body}); err != nil {
					t.Fatal(err)
				}
			}
			wantPrintable(t, s, strings.ReplaceAll(out.String(), "\n", ""))
		}
	}
}

// The sender of a message is named by its name in the task, in old records by its role, too.
func TestTranscript_NamesSender(t *testing.T) {
	for _, c := range []struct{ name, role, want string }{
		{"", "", "message from 5c8c"}, {"", "clerk", "message from clerk 5c8c"}, {"clerk-1", "clerk", "message from clerk-1 5c8c"},
	} {
		head, _ := newTranscript(nil, false).format(journal.Event{Body: journal.MessageReceived{Message: model.Message{From: "5c8c", FromName: c.name, FromRole: c.role}}})
		if head != c.want {
			t.Errorf("name %q, role %q: got %q, want %q", c.name, c.role, head, c.want)
		}
	}
}

func TestTranscript_CutsLongTexts(t *testing.T) {
	for _, c := range []struct {
		text string
		full bool
		want string
	}{
		{"", false, ""}, {"\n\n", false, ""}, {"a\nb\n", false, "    a\n    b\n"},
		{strings.Repeat("a\n", 12), false, strings.Repeat("    a\n", 12)},
		{strings.Repeat("a\n", 13), false, strings.Repeat("    a\n", 12) + "    (cut; the text has 25 bytes, --full shows them)\n"},
		{strings.Repeat("a\n", 13), true, strings.Repeat("    a\n", 13)},
		{strings.Repeat("ä", 1001), false, "    " + strings.Repeat("ä", 999) + "…\n    (cut; the text has 2002 bytes, --full shows them)\n"},
	} {
		if got := newTranscript(nil, c.full).indent(c.text); got != c.want {
			t.Errorf("%.20q: got %q, want %q", c.text, got, c.want)
		}
	}
}
