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

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// door is a place where an agent's string goes: a call made of it, and what is
// wrong with the answer to it when it was accepted.
type door struct {
	tool  string // "" is the string itself
	args  func(s string) any
	whole func(s string, answer gjson.Result) bool // nil: nothing may be accepted
	codes []errcode.Code                           // of refusals, invalid_arguments beside them
}

var doors = map[string]door{
	"a role's name and prompt": {"create_role", func(s string) any { return obj{"name": s, "rolePrompt": s, "toolGroups": []string{}} },
		func(s string, a gjson.Result) bool {
			return a.Get("name").Str == s && a.Get("rolePrompt").Str == s
		}, []errcode.Code{errcode.InvalidRole}},
	"a role's groups": {"create_role", func(s string) any {
		return obj{"name": "g " + identity.Derive(s), "rolePrompt": "", "toolGroups": []string{s}}
	},
		func(s string, a gjson.Result) bool { return a.Get("toolGroups").String() == asJSON([]string{s}) },
		[]errcode.Code{errcode.InvalidRole, errcode.InsufficientPermissions}},
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
	"a role to spawn": {"spawn_agent", func(s string) any {
		return obj{"roleId": s, "taskBrief": obj{"objective": s, "constraints": s, "inputs": []string{s}, "outputs": s, "completion_criteria": s}}
	}, nil, []errcode.Code{errcode.RoleNotFound, errcode.InvalidTaskBrief}},
	"a line to print": {"console_print", func(s string) any { return obj{"text": s} }, func(_ string, a gjson.Result) bool { return a.Exists() }, nil},
	"a tool's name":   {"", func(s string) any { return obj{"x": s} }, nil, []errcode.Code{errcode.UnknownTool}},
}

type obj = map[string]any

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// visitors are brains that push strings through doors: the task's text names
// the door, and a step the strings; the answers are kept.
type visitors struct {
	list []string

	mu      sync.Mutex // guards answers
	answers map[string][]model.Result
}

func (v *visitors) think(r model.Request) model.Answer {
	name := gjson.GetBytes(r.Items[0].Message.Payload, "text").Str
	door, ok := doors[name]
	switch {
	case !ok:
		return end(name)
	case answers(r) > 0:
		v.keep(name, r.Items)
		return end("done")
	}
	answer := model.Answer{Finish: model.FinishToolCalls}
	for _, s := range v.list {
		called := door.tool
		if called == "" {
			called = s
		}
		answer.Calls = append(answer.Calls, model.Call{Name: called, Args: json.RawMessage(asJSON(door.args(s)))})
	}
	return answer
}

func (v *visitors) keep(name string, items []model.Item) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []model.Result
	for _, item := range items {
		if item.Result != nil {
			list = append(list, *item.Result)
		}
	}
	v.answers[name] = list
}

// TestNaughtyStringsAtEveryDoorOfAnAgent: whatever string an agent gives, what
// is accepted comes back as it was, what is refused has a code that fits, and
// after a restart all is there as it was.
func TestNaughtyStringsAtEveryDoorOfAnAgent(t *testing.T) {
	v := &visitors{list: short.Sample(t, 60, corpus.NaughtyStrings()), answers: map[string][]model.Result{}}
	area := t.TempDir()
	h := openAt(t, area, v.think)
	h.visitor(t)
	var work sync.WaitGroup
	for name := range doors {
		work.Go(func() { v.visit(t, h, name) })
	}
	work.Wait()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) { v.inspect(t, name, door) })
	}
	t.Run("every stream is one event a line", func(t *testing.T) { wantLinesOfEvents(t, h) })
	t.Run("every line of the metrics is one sample", func(t *testing.T) { wantMetrics(t, h.send(t, "GET /metrics", "", nil).Body.String()) })
	t.Run("every file is inside", func(t *testing.T) { wantFilesInside(t, area) })
	before := everythingOf(t, h)
	h.close(t)
	again := openAt(t, area, v.think)
	defer again.close(t)
	if diff := cmp.Diff(before, everythingOf(t, again)); diff != "" {
		t.Errorf("after a restart (-before +after):\n%.2000s", diff)
	}
}

// visitor makes a role that may do everything.
func (h *house) visitor(t *testing.T) {
	t.Helper()
	all := toolgroups.All()
	if _, err := h.client().CreateRole(t.Context(), gateway.RoleRequest{Name: "visitor", Use: &all, Grant: &all}, false); err != nil {
		t.Fatal(err)
	}
}

func (v *visitors) visit(t *testing.T, h *house, name string) {
	task, err := h.rt.Start(t.Context(), org.TaskSpec{Text: name, Role: "visitor", Caller: identity.ByOperator("test")})
	if err == nil {
		_, err = h.rt.Wait(t.Context(), task)
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// inspect looks at what came of the strings at one door.
func (v *visitors) inspect(t *testing.T, name string, d door) {
	got := v.answers[name]
	if len(got) != len(v.list) {
		t.Fatalf("got %d answers to %d calls", len(got), len(v.list))
	}
	accepted := 0
	for i, s := range v.list {
		answer := gjson.ParseBytes(got[i].Content)
		code := errcode.Code(answer.Get("error").Str)
		switch {
		case !json.Valid(got[i].Content):
			t.Errorf("%q: the answer %q is no JSON", s, got[i].Content)
		case got[i].IsError && code != errcode.InvalidArguments && !slices.Contains(d.codes, code):
			t.Errorf("%q: refused with %s", s, got[i].Content)
		case !got[i].IsError && (d.whole == nil || !d.whole(s, answer)):
			t.Errorf("%q: answered %s", s, got[i].Content)
		case !got[i].IsError:
			accepted++
		}
	}
	t.Logf("%d of %d accepted", accepted, len(v.list))
	if (accepted > 0) != (d.whole != nil) {
		t.Errorf("%d of %d accepted: the door was not tried", accepted, len(v.list))
	}
}

// openAt is open for data and workspaces in a directory, closed by the test.
func openAt(t *testing.T, dir string, b brain) *house {
	t.Helper()
	h := &house{store: persisttest.OpenIn(t, filepath.Join(dir, "data"))}
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	counted, figures := measured(t, groups, &h.rt)
	rt, err := runtime.New(runtime.Config{
		Store: h.store, Groups: groups, Workspaces: filepath.Join(dir, "workspaces"), Observe: counted.Observe,
		Model: func(string) (model.Model, error) { return b, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.rt = rt
	if err := builtin.Register(groups, rt, builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	if h.handler, err = gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator, Metrics: figures, OnRefused: counted.Refused}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) close(t *testing.T) {
	t.Helper()
	h.rt.Close()
	persisttest.Close(t, h.store)
}

// wantLinesOfEvents reads the events of two tasks as programs do, line by line.
func wantLinesOfEvents(t *testing.T, h *house) {
	lines := 0
	for _, task := range collect(t, h.client().Tasks(t.Context(), "")) {
		if task.Text != "a message" && task.Text != "a tool's name" {
			continue
		}
		_, body := h.ask(t, "/api/v1/tasks/"+string(task.ID)+"/events", "")
		for line := range strings.Lines(body) {
			lines++
			if !json.Valid([]byte(line)) || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q is not an event on a line", line)
			}
		}
		_, sse := h.sse(t, string(task.ID))
		for line := range strings.Lines(sse) {
			if name, _, _ := strings.Cut(line, ": "); name != "id" && name != "data" && line != "\n" {
				t.Fatalf("a stream has the line %q", line)
			}
		}
	}
	if lines < 2*short.N(60, 515) {
		t.Errorf("only %d events", lines)
	}
}

// wantFilesInside wants every file that an agent wrote to be in a workspace,
// under the name that it was given, which is its content.
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
			t.Errorf("%q holds %q, %v", file, content, err)
		}
	}
	if count < short.N(15, 100) {
		t.Errorf("only %d files were written", count)
	}
}

func (h *house) sse(t *testing.T, task string) (status int, body string) {
	t.Helper()
	w := h.send(t, "/api/v1/tasks/"+task+"/events", "", http.Header{"Accept": {"text/event-stream"}})
	return w.Code, w.Body.String()
}

// everythingOf reads all there is, as JSON.
func everythingOf(t *testing.T, h *house) map[string]string {
	t.Helper()
	c, all := h.client(), map[string]string{}
	for _, r := range collect(t, c.Roles(t.Context())) {
		all["role "+string(r.ID)] = asJSON(r)
	}
	for _, task := range collect(t, c.Tasks(t.Context(), "")) {
		all["task "+string(task.ID)] = asJSON(task)
	}
	for _, a := range collect(t, c.Artifacts(t.Context(), "")) {
		content, err := c.Content(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		all["artifact "+a.ID] = asJSON(a) + string(content)
		if a.Type != string(content) || asJSON(obj{"m" + a.Type: a.Type}) != string(a.Meta) {
			t.Errorf("an artifact of type %q holds %q and %s", a.Type, content, a.Meta)
		}
	}
	for _, a := range collect(t, c.Agents(t.Context(), "", "")) {
		var journal bytes.Buffer
		for _, e := range collect(t, c.Journal(t.Context(), string(a.ID))) {
			journal.WriteString(asJSON(e) + "\n")
		}
		all["journal of "+string(a.ID)] = journal.String()
	}
	if len(all) < short.N(60, 500) {
		t.Errorf("only %d things are there", len(all))
	}
	return all
}

// TestHostileStringsAtEveryDoorOfTheAPI: in paths, queries and bodies no
// string is answered with anything but JSON and a code, finds somebody else,
// or touches a file.
func TestHostileStringsAtEveryDoorOfTheAPI(t *testing.T) {
	area := t.TempDir()
	h := openAt(t, area, team)
	defer h.close(t)
	h.work(t, "go")
	before := filesIn(t, area)
	strange := short.Sample(t, 300, append(corpus.NaughtyStrings(), corpus.Paths()...))
	for i, s := range strange {
		for _, thing := range things {
			r := "/api/v1/" + thing + "/" + strings.ReplaceAll(url.PathEscape(s), ".", "%2E")
			h.wantCode(t, "GET "+r, "", s)
		}
		if i%5 != 0 && i > 515 {
			continue // a fifth of the paths goes everywhere else too
		}
		for _, q := range []string{"/api/v1/tasks?status=", "/api/v1/roles?cursor=", "/api/v1/agents?task=", "/api/v1/tools?group=", "/api/v1/artifacts?task=", "/api/v1/roles?limit=", "/api/v1/tasks/x/events?after="} {
			h.wantCode(t, "GET "+q+url.QueryEscape(s), "", "")
		}
		h.wantCode(t, "GET /api/v1/roles?"+url.QueryEscape(s)+"=1", "", "")
		h.wantCode(t, "GET /metrics?"+url.QueryEscape(s)+"=1", "", "")
		h.wantCode(t, "POST /api/v1/roles?dryRun=1", asJSON(obj{"name": s, "rolePrompt": s, "model": s, "toolGroups": []string{s}, "grant": []string{s}}), "")
		h.wantCode(t, "POST /api/v1/can", asJSON(obj{"role": s, "tool": s, "group": []string{s}, "state": s}), "")
		h.wantCode(t, "POST /api/v1/can", asJSON(obj{"who": s, "state": s}), "")
		h.wantCode(t, "POST /api/v1/agents/nobody/messages", asJSON(obj{"text": s}), "")
		h.wantCode(t, "POST /api/v1/roles?dryRun=1", s, "")
		h.wantCode(t, "POST /api/v1/roles?dryRun=1", asJSON(obj{s: s}), "")
	}
	if diff := cmp.Diff(before, filesIn(t, area)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

// wantCode sends a request. The answer is a success in JSON, of what was asked
// for if that has a name, or a refusal with a code that is not the process's
// fault.
func (h *house) wantCode(t *testing.T, path, body, name string) {
	t.Helper()
	w := h.send(t, path, body, nil)
	switch {
	case w.Code >= http.StatusInternalServerError || w.Code >= 300 && w.Code < 400:
		t.Errorf("%s %s: answered %d %s", path, body, w.Code, w.Body)
	case w.Code >= http.StatusBadRequest:
		refused(t, w.Body.String())
	case name != "":
		wantAskedFor(t, name, w)
	case !json.Valid(w.Body.Bytes()):
		t.Errorf("%s %s: answered %s", path, body, w.Body)
	}
}

// filesIn lists what is in a directory and below.
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
