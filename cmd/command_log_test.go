package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// deniedScript makes root call a tool that it does not have, and a tool that it has.
const deniedScript = `role("root", function* (task) {
  yield call("run_command", { command: "true" });
  yield call("create_role", { name: "clerk", rolePrompt: "x".repeat(3000), toolGroups: ["workspace"] });
  return "plain";
});`

// runDenied runs a task of deniedScript and returns its id.
func runDenied(t *testing.T, dir string) (id string) {
	t.Helper()
	file := filepath.Join(dir, "org.yaml")
	for name, text := range map[string]string{file: waits, filepath.Join(dir, "agents.js"): deniedScript} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, stderr := runCommand(t, dir, "run", "-f", file, "go")
	id, _, _ = strings.Cut(strings.TrimPrefix(stderr, "task "), "\n")
	return id
}

// The log has one line for each event, with its time, its task and its agent. A denial has
// its code, rule and reason.
func TestLog_LinePerEvent(t *testing.T) {
	dir := t.TempDir()
	id := runDenied(t, dir)
	lines := strings.Split(strings.TrimSuffix(mustRun(t, dir, "log"), "\n"), "\n")
	line := regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  (` + id[:13] + `|-            )  [-+!=~* ] \S`)
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Errorf("got the line %q", l)
		}
	}
	for i, want := range []string{
		`  \+ task of operator  go$`, `  \+ root/[0-9a-f]{6}  may call `, `    user → root/[0-9a-f]{6}  go$|    user → agent/[0-9a-f]{6}  go$`,
		`    root/[0-9a-f]{6}  answers  \(1 call\)$`, `  ! root/[0-9a-f]{6}  run_command  denied: tool_not_available \(.+\): tool run_command is not available to this role$`,
	} {
		if !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("line %d is %q, want %s", i, lines[i], want)
		}
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, "  = task done  plain") {
		t.Errorf("the last line is %q", last)
	}
}

func TestLog_FiltersAndLimits(t *testing.T) {
	dir := t.TempDir()
	id := runDenied(t, dir)
	all := mustRun(t, dir, "log", "--limit", "0")
	count := func(args ...string) int {
		return strings.Count(mustRun(t, dir, append([]string{"log"}, args...)...), "\n")
	}
	for _, c := range []struct {
		want int
		args []string
	}{
		{strings.Count(all, "\n"), nil}, {strings.Count(all, "\n"), []string{"--since", "1h"}}, {0, []string{"--since", "0s"}},
		{1, []string{"--denied"}}, {1, []string{"--denied", "--json"}}, {1, []string{"--tool", "run_command"}}, {0, []string{"--tool", "read_file"}},
		{1, []string{"--type", "result"}}, {2, []string{"--type", "result,task_started"}}, {2, []string{"--type", "result", "--type", "task_started"}},
		{1, []string{"--role", "clerk"}}, {1, []string{"--caller", "operator", "--type", "result", "--task", id, "--agent", "root"}},
		{3, []string{"--limit", "3"}}, {3, []string{"--limit", "3", "--json"}},
	} {
		if got := count(c.args...); got != c.want {
			t.Errorf("%v: %d lines, want %d:\n%s", c.args, got, c.want, mustRun(t, dir, append([]string{"log"}, c.args...)...))
		}
	}
	status, stdout, stderr := runCommand(t, dir, "log", "--limit", "2")
	if status != 0 || !strings.HasSuffix(all, stdout) || strings.Count(stdout, "\n") != 2 || stderr != "only the newest 2 events are shown; --limit 0 shows all\n" {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

// A deleted role and a tool that is gone are found as long as events name them. So is an agent
// by what the log calls it.
func TestLog_FindsWhatIsOnRecord(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	mustRun(t, dir, "role", "delete", "clerk")
	if got := mustRun(t, dir, "log", "--role", "clerk"); strings.Count(got, "* role clerk") != 2 {
		t.Errorf("events of a deleted role:\n%s", got)
	}
	if got := mustRun(t, dir, "log", "--caller", "operator", "--denied"); strings.Count(got, "\n") != 1 {
		t.Errorf("events of the operator:\n%s", got)
	}
	label := regexp.MustCompile(`root/([0-9a-f]{6})`).FindStringSubmatch(mustRun(t, dir, "log", "--denied"))
	for _, ref := range label {
		if got := mustRun(t, dir, "log", "--agent", ref, "--type", "result"); strings.Count(got, "\n") != 1 {
			t.Errorf("--agent %s:\n%s", ref, got)
		}
		if got := mustRun(t, dir, "agent", "show", ref); !strings.Contains(got, label[1]+"\n") {
			t.Errorf("agent show %s:\n%s", ref, got)
		}
	}
	if status, _, stderr := runCommand(t, dir, "agent", "show", "clerk/"+label[1]); status != 1 || !strings.Contains(stderr, "agent_not_found") {
		t.Errorf("an agent of another role: %d, %s", status, stderr)
	}
}

// With --json the log is that of "run --json": one event per line, oldest first.
func TestLog_JSON(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	var seq uint64
	for line := range strings.Lines(mustRun(t, dir, "log", "--json")) {
		var e journal.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq <= seq {
			t.Fatalf("%s: %v", line, err)
		}
		seq = e.Seq
	}
	if seq == 0 {
		t.Error("no events")
	}
}

// A log without events says so on stderr, so that it does not look like a command that hangs.
func TestLog_Empty(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	for _, c := range []struct{ tool, note string }{{"list_files", "no recorded event matches\n"}, {"run_command", ""}} {
		if status, stdout, stderr := runCommand(t, dir, "log", "--denied", "--tool", c.tool); status != 0 || stderr != c.note || (stdout == "") != (c.note != "") {
			t.Errorf("%s: status %d, %q, %q", c.tool, status, stdout, stderr)
		}
	}
}

func TestLog_BadArguments(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	for _, c := range []struct {
		status int
		want   string
		args   []string
	}{
		{2, "--limit -1 is out of range", []string{"--limit", "-1"}},
		{2, "is out of range", []string{"--limit", "99999999999999999999"}},
		{2, "--since is \"tomorrow\", which is neither", []string{"--since", "tomorrow"}},
		{2, "which is in the future", []string{"--since", "2999-01-01T00:00:00Z"}},
		{2, "which is negative", []string{"--since", "-5m"}},
		{2, "--since is empty", []string{"--since", ""}},
		{2, "did you mean \"tool_call\"?", []string{"--type", "tool_cal"}},
		{2, "unknown type", []string{"--type", "message_taken"}},
		{2, "--type is empty", []string{"--type", ""}},
		{2, "log takes no arguments", []string{"x"}},
		{2, "--denies", []string{"--denies"}},
		{1, "task_not_found", []string{"--task", "nonesuch"}},
		{1, "agent_not_found", []string{"--agent", "\x1b[31m"}},
		{0, "", []string{"--limit", "9223372036854775807"}},
		{1, "no process serves", []string{"--follow"}},
		{1, "no process serves", []string{"--follow", "--json"}},
		{1, `role_not_found: there is no role "clerc"; did you mean "clerk"?`, []string{"--role", "clerc"}},
		{1, "did you mean \"run_command\"?", []string{"--tool", "run_comman"}},
		{1, `no call or task of a caller "operatr" is on record; did you mean "operator"?`, []string{"--caller", "operatr"}},
		{1, "role_not_found", []string{"--role", "nobody", "--denied", "--json"}},
	} {
		status, _, stderr := runCommand(t, dir, append([]string{"log"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "\x1b") {
			t.Errorf("%v: status %d, %q, want %d and %q", c.args, status, stderr, c.status, c.want)
		}
	}
	if status, stdout, _ := runCommand(t, t.TempDir(), "log"); status != 2 || stdout != "" {
		t.Errorf("without a data directory: status %d, %q", status, stdout)
	}
}

// contentResult returns a result with contents whose texts are s.
func contentResult(t *testing.T, s string) json.RawMessage {
	t.Helper()
	return tool.Result{Text: s, Content: []tool.Content{{Type: tool.ImageContent, MIMEType: s, Size: 7, Name: s, Ref: s, Note: s}}}.JSON()
}

// A result with contents is described on one line.
func TestLogView_DescribesContents(t *testing.T) {
	var out bytes.Buffer
	result := tool.Result{Text: "a dot", Structured: []byte(`{"n":1}`), Content: []tool.Content{
		{Type: tool.ImageContent, MIMEType: "image/png", Size: 73, Ref: "artifact:5c8c53b4"}, {Type: tool.LinkContent, URI: "mem://a", Name: "a"},
	}}
	view := newLogView(&common{out: &out, env: func(string) (string, bool) { return "", false }})
	if err := view.show(journal.Event{Role: "artist", Body: journal.ToolResult{Tool: "draw", Result: result.JSON()}}); err != nil {
		t.Fatal(err)
	}
	if want := `draw → a dot; image, image/png, artifact:5c8c53b4, 73 bytes; resource_link, a, mem://a; {"n":1}`; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	for _, other := range []string{`{"content":[{"type":"row"}]}`, `{"content":"x"}`, `"x"`, `{"content":[1]}`} {
		if lines := contentLines([]byte(other)); lines != nil {
			t.Errorf("%s: %q", other, lines)
		}
	}
}

// Whatever agents and callers write, a line of the log is one line of printable characters.
func TestLogView_SanitizesEvents(t *testing.T) {
	for _, s := range short.SampleList(t, 100, hostileStrings()) {
		raw, err := json.Marshal(map[string]string{"text": s})
		if err != nil {
			t.Fatal(err)
		}
		caller := identity.ByCaller(identity.UserName(s), "r").String()
		events := sampleEvents(s)
		for _, body := range []journal.EventBody{
			journal.TaskStarted{Text: s, Caller: caller}, journal.TaskEnded{Status: "done", Result: raw}, journal.TaskEnded{Status: s, Code: "x", Error: s},
			journal.ToolCall{Tool: s, Caller: caller, Decision: journal.Denied, Rule: s, Reason: s}, journal.ToolResult{Tool: s, Caller: caller, Result: raw},
			journal.ToolResult{Tool: s, Result: contentResult(t, s)},
			journal.StateTransition{To: s, Caller: caller}, journal.RoleChanged{Change: s, By: caller}, journal.GroupRegistered{Group: s, Owner: s, Tools: []string{s}},
			journal.GroupUnregistered{Group: s, Owner: s}, journal.GroupOpened{Group: s, Owner: s, Tools: []string{s}}, journal.GroupClosed{Group: s, Owner: s},
			journal.ItemChanged{Kind: s, Name: s, Change: s, By: caller, Digest: s},
		} {
			events = append(events, journal.Event{Role: s, Task: identity.TaskID(s), Body: body})
		}
		for _, e := range events {
			var out bytes.Buffer
			if err := newLogView(&common{out: &out, env: func(string) (string, bool) { return "", false }}).show(e); err != nil {
				t.Fatal(err)
			}
			if out.Len() > 0 && strings.Count(out.String(), "\n") != 1 {
				t.Errorf("%q: %d lines", s, strings.Count(out.String(), "\n"))
			}
			wantPrintable(t, s, strings.TrimSuffix(out.String(), "\n"))
		}
	}
}

// brokenPipe is an output without a reader.
type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

// A log without a reader ends.
func TestLog_EndsWithItsReader(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	for _, args := range [][]string{{"log"}, {"log", "--json"}} {
		c := &common{in: strings.NewReader(""), out: brokenPipe{}, err: new(bytes.Buffer), env: func(string) (string, bool) { return "", false }}
		if status := run(t.Context(), c, append([]string{"--data", dir}, args...)); status != 1 {
			t.Errorf("%v: status %d", args, status)
		}
	}
}

// With --follow the log goes on while a process works, until the command is interrupted.
func TestLog_Follow(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &common{launcher: launcher, in: strings.NewReader(""), out: new(bytes.Buffer), err: new(bytes.Buffer), data: dir, env: func(string) (string, bool) { return "", false }}
	err := withSession(t.Context(), c, sessionOptions{}, func(_ context.Context, s *session) error {
		s.MarkReady()
		out := &triggerWriter{onLine: map[int]func(){
			1: func() {
				api, err := client.Dial(dir)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := api.CreateRole(t.Context(), client.RoleRequest{Name: "late"}, false); err != nil {
					t.Error(err)
				}
			},
			2: cancel,
		}}
		follower := &common{in: strings.NewReader(""), out: out, err: new(bytes.Buffer), env: func(string) (string, bool) { return "", false }}
		if status := run(ctx, follower, []string{"--data", dir, "log", "--follow", "--limit", "1"}); status != 0 {
			t.Errorf("status %d: %s", status, follower.err)
		}
		if !strings.Contains(out.String(), "* role late created by operator") {
			t.Errorf("got %s", out)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// triggerWriter calls a function after each line.
type triggerWriter struct {
	bytes.Buffer
	onLine map[int]func()
	lines  int
}

func (w *triggerWriter) Write(text []byte) (int, error) {
	n, err := w.Buffer.Write(text)
	w.lines++
	if do := w.onLine[w.lines]; do != nil {
		do()
	}
	return n, err
}
