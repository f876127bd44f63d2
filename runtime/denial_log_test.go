package runtime_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// Each denied call is one line of the log with who called, in which role, the tool, the code
// and the rule, and without characters that control a terminal.
func TestLog_LineForEachDenial(t *testing.T) {
	var log buffer.SyncBuffer
	const hostile = "run\x1b[31m\n\u009bcommand"
	fx := fixtureConfig{
		model: answerFunc(func(r model.Request) model.Answer {
			if answerCount(r) == 0 {
				return callTools("run_command", obj{"command": "true"}, hostile, obj{})
			}
			return endWith("done")
		}),
		configure: func(c *runtime.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		},
	}.open(t)
	task := fx.run(t, org.TaskSpec{Text: "go"})
	lines := strings.Split(strings.TrimSuffix(log.Drain(), "\n"), "\n")
	want := []string{
		fmt.Sprintf(`level=WARN msg="call denied" agent=%s role=root tool=run_command code=tool_not_available rule=`, task.Top),
		fmt.Sprintf(`level=WARN msg="call denied" agent=%s role=root tool="run`, task.Top),
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), strings.Join(lines, "\n"))
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) || strings.ContainsAny(line, "\x1b\u009b") {
			t.Errorf("line %d is %q, want %s", i, line, want[i])
		}
	}
	ann := fx.createCaller(t, "workspace")
	fx.invoke(t, ann, "run_command", obj{})
	if got := log.Drain(); !strings.Contains(got, `level=WARN msg="call denied" caller=ann role=guest tool=run_command code=tool_not_available rule=`) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %s", got)
	}
	if _, _, err := fx.PauseRole(identity.ByOperator("test"), ann.Role, ""); err != nil {
		t.Fatal(err)
	}
	fx.invoke(t, ann, "read_file", obj{})
	if got := log.Drain(); !strings.Contains(got, "tool=read_file code=tool_not_available rule=paused\n") {
		t.Errorf("in a suspended role: %s", got)
	}
}

// A flood of denied calls of one caller causes a bounded number of lines, and those of
// others are still logged. All denials are recorded.
func TestLog_FloodOfDenialsIsBounded(t *testing.T) {
	var log buffer.SyncBuffer
	fx := fixtureConfig{configure: func(c *runtime.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }}.open(t)
	ann := fx.createCaller(t, "workspace")
	for range 100 {
		fx.invoke(t, ann, "run_command", obj{})
	}
	fx.invoke(t, identity.ByCaller("bob", ann.Role), "run_command", obj{})
	got := log.String()
	if strings.Count(got, "caller=ann") > 20 || strings.Count(got, "caller=ann") < 10 || strings.Count(got, "caller=bob") != 1 || !strings.Contains(got, "leftOut=") {
		t.Errorf("got\n%s", got)
	}
	if err := fx.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := len(bodiesOf[journal.ToolCall](t, fx)); n != 101 {
		t.Errorf("%d denials are recorded, want 101", n)
	}
}

// A rejected request is one line with its groups and state, without its text and without
// characters that control a terminal. A flood of them is bounded.
func TestLog_LineForRejectedRequest(t *testing.T) {
	const hostile = "do\x1b[31m\n\u009bor"
	p := newLogRecorder()
	fx := fixtureConfig{configure: p.configure(slog.LevelWarn)}.open(t)
	ann := fx.createCaller(t, "workspace")
	ask := func(s org.TaskSpec) map[string]any {
		t.Helper()
		p.Drain()
		s.Text, s.Caller, s.Ask = "confidential", ann, true
		if _, err := fx.StartTask(t.Context(), s); err == nil {
			t.Fatalf("%+v is not rejected", s)
		}
		line := p.Drain()
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if strings.Contains(line, "confidential") || strings.ContainsAny(line, "\x1b\u009b") || strings.Contains(line, `\u001b`) {
			t.Errorf("logged %s", line)
		}
		delete(got, "time")
		return got
	}
	own := string(ann.Role)
	for _, tt := range []struct {
		spec org.TaskSpec
		want map[string]any
	}{
		{org.TaskSpec{Role: own}, map[string]any{"requested_groups": []any{"default"}, "code": "insufficient_permissions"}},
		{org.TaskSpec{Role: "other"}, map[string]any{"asked_role": "other", "code": "insufficient_permissions"}},
		{org.TaskSpec{Role: own, Groups: groupSet("command", hostile)}, map[string]any{"requested_groups": []any{"command", "do\ufffd[31m \ufffdor"}, "code": "insufficient_permissions"}},
		{org.TaskSpec{Role: hostile, State: "analysis", Groups: groupSet()}, map[string]any{"asked_role": "do\ufffd[31m \ufffdor", "requested_groups": []any{}, "initial_state": "analysis", "code": "insufficient_permissions"}},
	} {
		want := map[string]any{"level": "WARN", "msg": "request denied", "caller": "ann", "role": "guest", "initial_state": "undefined"}
		maps.Copy(want, tt.want)
		if diff := cmp.Diff(want, ask(tt.spec)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.spec, diff)
		}
	}
	p.Drain()
	for range 100 {
		if _, err := fx.StartTask(t.Context(), org.TaskSpec{Caller: ann, Role: own, Ask: true}); err == nil {
			t.Fatal("not rejected")
		}
	}
	if n := strings.Count(p.Drain(), "request denied"); n > 20 {
		t.Errorf("%d lines about one caller", n)
	}
}
