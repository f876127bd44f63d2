package gateway_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// inputCase is a way for a string to enter through a tool call of an agent.
type inputCase struct {
	tool     string // "" calls a tool named like the string
	args     func(s string) any
	accepted func(s string, answer gjson.Result) bool // checks the answer to an accepted string; nil if none may be accepted
	codes    []errcode.Code                           // allowed error codes in addition to invalid_arguments
}

var inputCases = map[string]inputCase{
	"a role's name and prompt": {"create_role", func(s string) any { return obj{"name": s, "rolePrompt": s, "toolGroups": []string{}} },
		func(s string, a gjson.Result) bool {
			return a.Get("name").Str == s && a.Get("rolePrompt").Str == s
		}, []errcode.Code{errcode.InvalidRole}},
	"a role's description": {"create_role", func(s string) any {
		return obj{"name": "d " + identity.DeriveID(s), "description": s, "rolePrompt": "", "toolGroups": []string{}}
	},
		func(s string, a gjson.Result) bool { return a.Get("description").Str == s }, []errcode.Code{errcode.InvalidRole}},
	"a role's groups": {"create_role", func(s string) any {
		return obj{"name": "g " + identity.DeriveID(s), "rolePrompt": "", "toolGroups": []string{s}}
	},
		nil, // no group has such a name
		[]errcode.Code{errcode.InvalidRole, errcode.InsufficientPermissions, errcode.GroupNotFound}},
	"a name to look for": {"find_role_by_name", func(s string) any { return obj{"name": s} },
		func(s string, a gjson.Result) bool { return a.Type == gjson.Null || a.Get("name").Str == s }, nil},
	"an artifact": {"put_artifact", func(s string) any { return obj{"type": s, "content": s, "meta": obj{"m" + s: s}} },
		func(s string, a gjson.Result) bool { return strings.HasPrefix(a.Get("artifactRef").Str, "artifact:") }, nil},
	"an artifact's reference": {"get_artifact", func(s string) any { return obj{"ref": s} },
		func(_ string, a gjson.Result) bool { return a.Type == gjson.Null }, nil},
	"a file": {"write_file", func(s string) any { return obj{"path": s, "content": s} },
		func(s string, a gjson.Result) bool { return a.Get("size").Int() == int64(len(s)) },
		[]errcode.Code{errcode.PathTraversal, errcode.FileNotFound, errcode.NotADirectory, errcode.PermissionDenied, errcode.ToolExecutionFailed}},
	"a recipient": {"send_message", func(s string) any { return obj{"to": s, "payload": s} }, nil, []errcode.Code{errcode.UnknownRecipient, errcode.CrossTask}},
	"a message": {"send_message", func(s string) any {
		return obj{"to": "user", "payload": obj{"text": s, "k" + s: s}, "quickReplies": []string{s}}
	},
		func(s string, a gjson.Result) bool { return a.Get("messageId").Exists() }, []errcode.Code{errcode.BlankReply}},
	"a delay": {"send_message", func(s string) any { return obj{"to": "user", "payload": s, "delayMs": s} },
		func(s string, a gjson.Result) bool { return a.Get("messageId").Exists() }, nil},
	"an agent to end": {"terminate_agent", func(s string) any { return obj{"agentId": s, "reason": s} }, nil, []errcode.Code{errcode.AgentNotFound, errcode.NotChildAgent}},
	"a role to spawn": {"spawn_agent", func(s string) any { // no role has a name that ends in a space
		return obj{"roleId": s + " ", "taskBrief": obj{"objective": s, "constraints": s, "inputs": []string{s}, "outputs": s, "completion_criteria": s}}
	}, nil, []errcode.Code{errcode.RoleNotFound, errcode.InvalidTaskBrief}},
	"a line to print": {"console_print", func(s string) any { return obj{"text": s} }, func(_ string, a gjson.Result) bool { return a.Exists() }, nil},
	"a tool's name":   {"", func(s string) any { return obj{"x": s} }, nil, []errcode.Code{errcode.UnknownTool}},
}

// inputModel calls the tool of an inputCase with every string and records the
// results. The task's text names the case.
type inputModel struct {
	inputs []string

	mu      sync.Mutex // guards results
	results map[string][]model.CallResult
}

func (m *inputModel) generate(r model.Request) model.Answer {
	name := gjson.GetBytes(r.Items[0].Message.Payload, "text").Str
	c, ok := inputCases[name]
	switch {
	case !ok:
		return gatewaytest.EndAnswer(name)
	case gatewaytest.CountAnswers(r) > 0:
		m.record(name, r.Items)
		return gatewaytest.EndAnswer("done")
	}
	answer := model.Answer{Finish: model.FinishToolCalls}
	for _, s := range m.inputs {
		called := c.tool
		if called == "" {
			called = s
		}
		answer.Calls = append(answer.Calls, model.Call{Name: called, Args: json.RawMessage(asJSON(c.args(s)))})
	}
	return answer
}

func (m *inputModel) record(name string, items []model.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []model.CallResult
	for _, item := range items {
		if item.Result != nil {
			list = append(list, *item.Result)
		}
	}
	m.results[name] = list
}

// TestNaughtyStrings_FromAgents checks that every string from an agent is
// either stored unchanged or rejected with a suitable code, and that nothing
// changes with a restart.
func TestNaughtyStrings_FromAgents(t *testing.T) {
	m := &inputModel{inputs: short.SampleList(t, 30, corpus.NaughtyStrings()), results: map[string][]model.CallResult{}}
	area := t.TempDir()
	f := newFixtureIn(t, area, m.generate)
	addVisitorRole(t, f)
	var work sync.WaitGroup
	for name := range inputCases {
		work.Go(func() { m.run(t, f, name) })
	}
	work.Wait()
	for name, c := range inputCases {
		t.Run(name, func(t *testing.T) { m.check(t, name, c) })
	}
	t.Run("event streams have one event per line", func(t *testing.T) { wantLinesOfEvents(t, f) })
	t.Run("metrics have one sample per line", func(t *testing.T) { wantMetrics(t, f.SendRequest(t, "GET /metrics", "", nil).Body.String()) })
	t.Run("files stay in the workspace", func(t *testing.T) { wantFilesInside(t, area) })
	before := snapshotOf(t, f)
	closeFixture(t, f)
	again := newFixtureIn(t, area, m.generate)
	defer closeFixture(t, again)
	if diff := cmp.Diff(before, snapshotOf(t, again)); diff != "" {
		t.Errorf("after a restart (-before +after):\n%.2000s", diff)
	}
}

// addVisitorRole creates a role that may use and grant everything.
func addVisitorRole(t *testing.T, f *gatewaytest.Fixture) {
	t.Helper()
	all := toolgroups.AllGroups()
	if _, err := f.LocalClient().CreateRole(t.Context(), wire.RoleRequest{Name: "visitor", Use: &all, Grant: &all}, false); err != nil {
		t.Fatal(err)
	}
}

// run runs the task of one case.
func (m *inputModel) run(t *testing.T, f *gatewaytest.Fixture, name string) {
	task, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: name, Role: "visitor", Caller: identity.ByOperator("test")})
	if err == nil {
		_, err = f.Runtime.WaitTask(t.Context(), task)
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// check checks the results of one case.
func (m *inputModel) check(t *testing.T, name string, c inputCase) {
	got := m.results[name]
	if len(got) != len(m.inputs) {
		t.Fatalf("got %d answers to %d calls", len(got), len(m.inputs))
	}
	accepted := 0
	for i, s := range m.inputs {
		answer := gjson.ParseBytes(got[i].Content)
		code := errcode.Code(answer.Get("error").Str)
		switch {
		case !json.Valid(got[i].Content):
			t.Errorf("%q: the answer %q is not JSON", s, got[i].Content)
		case got[i].IsError && code != errcode.InvalidArguments && !slices.Contains(c.codes, code):
			t.Errorf("%q: refused with %s", s, got[i].Content)
		case !got[i].IsError && (c.accepted == nil || !c.accepted(s, answer)):
			t.Errorf("%q: answered %s", s, got[i].Content)
		case !got[i].IsError:
			accepted++
		}
	}
	t.Logf("%d of %d strings accepted", accepted, len(m.inputs))
	if (accepted > 0) != (c.accepted != nil) {
		t.Errorf("%d of %d strings accepted", accepted, len(m.inputs))
	}
}

// wantLinesOfEvents checks that the event streams of two tasks have one event
// per line.
func wantLinesOfEvents(t *testing.T, f *gatewaytest.Fixture) {
	lines := 0
	for _, task := range gatewaytest.CollectAll(t, f.LocalClient().ListTasks(t.Context(), "")) {
		if task.Text != "a message" && task.Text != "a tool's name" {
			continue
		}
		_, body := f.SendText(t, "/api/v1/tasks/"+string(task.ID)+"/events", "")
		for line := range strings.Lines(body) {
			lines++
			if !json.Valid([]byte(line)) || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q is not an event on a line", line)
			}
		}
		_, sse := readSSE(t, f, string(task.ID))
		for line := range strings.Lines(sse) {
			if name, _, _ := strings.Cut(line, ": "); name != "id" && name != "data" && line != "\n" {
				t.Fatalf("a stream has the line %q", line)
			}
		}
	}
	if lines < 2*short.Count(60, 515) {
		t.Errorf("only %d events", lines)
	}
}

// wantFilesInside checks that every file written by an agent is in its
// workspace, under the name that is also its content.
func wantFilesInside(t *testing.T, area string) {
	t.Helper()
	count := 0
	for _, file := range filesIn(t, area) {
		info, err := os.Stat(file)
		if err != nil || info.IsDir() || file == filepath.Join(area, "data", "rolecall.db") {
			continue
		}
		content, err := os.ReadFile(file)
		inside, _ := filepath.Rel(filepath.Join(area, "workspaces"), file)
		place := strings.SplitN(inside, "/", 3) // task, agent, name
		if count++; err != nil || len(place) != 3 || path.Clean(string(content)) != place[2] {
			t.Errorf("%q contains %q, %v", file, content, err)
		}
	}
	if count < short.Count(15, 100) {
		t.Errorf("only %d files were written", count)
	}
}

// readSSE reads the events of a task as server-sent events.
func readSSE(t *testing.T, f *gatewaytest.Fixture, task string) (status int, body string) {
	t.Helper()
	w := f.SendRequest(t, "/api/v1/tasks/"+task+"/events", "", http.Header{"Accept": {"text/event-stream"}})
	return w.Code, w.Body.String()
}

// snapshotOf returns everything the API shows, as JSON.
func snapshotOf(t *testing.T, f *gatewaytest.Fixture) map[string]string {
	t.Helper()
	c, all := f.LocalClient(), map[string]string{}
	for _, r := range gatewaytest.CollectAll(t, c.ListRoles(t.Context())) {
		all["role "+string(r.ID)] = asJSON(r)
	}
	for _, task := range gatewaytest.CollectAll(t, c.ListTasks(t.Context(), "")) {
		all["task "+string(task.ID)] = asJSON(task)
	}
	for _, a := range gatewaytest.CollectAll(t, c.ListArtifacts(t.Context(), "")) {
		content, err := c.ArtifactContent(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		all["artifact "+a.ID] = asJSON(a) + string(content)
		if a.Type != string(content) || asJSON(obj{"m" + a.Type: a.Type}) != string(a.Meta) {
			t.Errorf("an artifact of type %q contains %q and %s", a.Type, content, a.Meta)
		}
	}
	for _, a := range gatewaytest.CollectAll(t, c.ListAgents(t.Context(), "", "")) {
		var journal bytes.Buffer
		for _, e := range gatewaytest.CollectAll(t, c.AgentJournal(t.Context(), string(a.ID))) {
			journal.WriteString(asJSON(e) + "\n")
		}
		all["journal of "+string(a.ID)] = journal.String()
	}
	if len(all) < short.Count(60, 500) {
		t.Errorf("only %d entries", len(all))
	}
	return all
}

// TestNaughtyStrings_InRequests checks that strings in paths, queries and
// bodies are answered with JSON and a code, never find another resource and
// never touch a file.
func TestNaughtyStrings_InRequests(t *testing.T) {
	area := t.TempDir()
	f := newFixtureIn(t, area, gatewaytest.TeamModel)
	defer closeFixture(t, f)
	f.RunTask(t, "go")
	before := filesIn(t, area)
	inputs := short.SampleList(t, 120, append(corpus.NaughtyStrings(), corpus.TraversalPaths()...))
	for i, s := range inputs {
		for _, resource := range resources {
			r := "/api/v1/" + resource + "/" + strings.ReplaceAll(url.PathEscape(s), ".", "%2E")
			wantCode(t, f, "GET "+r, "", s)
		}
		if i%5 != 0 && i > 515 {
			continue // only a fifth of the paths is used everywhere else
		}
		for _, q := range []string{"/api/v1/tasks?status=", "/api/v1/roles?cursor=", "/api/v1/agents?task=", "/api/v1/tools?group=", "/api/v1/artifacts?task=", "/api/v1/roles?limit=", "/api/v1/tasks/x/events?after="} {
			wantCode(t, f, "GET "+q+url.QueryEscape(s), "", "")
		}
		wantCode(t, f, "GET /api/v1/roles?"+url.QueryEscape(s)+"=1", "", "")
		wantCode(t, f, "GET /metrics?"+url.QueryEscape(s)+"=1", "", "")
		wantCode(t, f, "POST /api/v1/roles?dryRun=1", asJSON(obj{"name": s, "rolePrompt": s, "model": s, "toolGroups": []string{s}, "grant": []string{s}}), "")
		wantCode(t, f, "POST /api/v1/can", asJSON(obj{"role": s, "tool": s, "group": []string{s}, "state": s}), "")
		wantCode(t, f, "POST /api/v1/can", asJSON(obj{"who": s, "state": s}), "")
		wantCode(t, f, "POST /api/v1/agents/nobody/messages", asJSON(obj{"text": s}), "")
		wantCode(t, f, "POST /api/v1/roles?dryRun=1", s, "")
		wantCode(t, f, "POST /api/v1/roles?dryRun=1", asJSON(obj{s: s}), "")
	}
	if diff := cmp.Diff(before, filesIn(t, area)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

// wantCode sends a request and requires JSON: the resource called name, if that is
// set, or an error that is not internal.
func wantCode(t *testing.T, f *gatewaytest.Fixture, path, body, name string) {
	t.Helper()
	w := f.SendRequest(t, path, body, nil)
	switch {
	case w.Code >= http.StatusInternalServerError || w.Code >= 300 && w.Code < 400:
		t.Errorf("%s %s: answered %d %s", path, body, w.Code, w.Body)
	case w.Code >= http.StatusBadRequest:
		gatewaytest.DecodeError(t, w.Body.String())
	case name != "":
		wantResource(t, name, w)
	case !json.Valid(w.Body.Bytes()):
		t.Errorf("%s %s: answered %s", path, body, w.Body)
	}
}

// filesIn lists the paths in a directory, recursively.
func filesIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
