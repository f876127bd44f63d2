package script_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

func Example() {
	m, err := script.New("greeter.js", []byte(`
		role("root", function* (task) {
			yield say("looking at " + task.payload.text);
			return { done: task.payload.text, tools };
		});`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	conversation := []model.Item{{Message: &model.Message{ID: "m1", From: "user", Payload: []byte(`{"text":"the logs"}`)}}}
	for range 2 {
		request := model.Request{Self: model.AgentInfo{ID: "a1", Role: "root"}, Items: conversation, Tools: []string{"read_file"}}
		for delta, err := range m.Generate(context.Background(), request) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(delta.Answer.Finish, delta.Answer.Text+string(delta.Answer.Value))
			conversation = append(conversation, model.Item{Answer: delta.Answer})
		}
	}
	// Output:
	// continue looking at the logs
	// result {"done":"the logs","tools":["read_file"]}
}

// Each case runs twice: with the virtual machine cached between the steps, and with the
// conversation replayed in every step, as after a restart.
func TestModel_RunsScripts(t *testing.T) {
	tests := []struct {
		name   string
		source string
		inbox  map[int][]string // the messages that arrive before the n-th request
		want   string
	}{
		{
			"first message is the task",
			`role("root", function* (task) { return [task.id, task.from, task.payload, task.taskId, task.createdAt] })`,
			map[int][]string{0: {`{"text":"go"}`}},
			`end ["m1","user",{"text":"go"},"task-1","2026-01-02T03:04:01Z"] read=1`,
		},
		{
			"no message",
			`role("root", function* () { return 1 })`,
			nil,
			`wait read=0`,
		},
		{
			"call returns the parsed result",
			`role("root", function* () { const r = yield call("echo", {a: [1]}); return r.echo.a })`,
			map[int][]string{0: {`1`}},
			"calls echo{\"a\":[1]} read=1\nend [1] read=1",
		},
		{
			"list of calls returns results in order",
			`role("root", function* () { const [a, b] = yield [call("echo", {n: 1}), call("echo", {n: 2})]; return [a.echo.n, b.echo.n] })`,
			map[int][]string{0: {`1`}},
			"calls echo{\"n\":1} echo{\"n\":2} read=1\nend [1,2] read=1",
		},
		{
			"list of one call returns a list",
			`role("root", function* () { return (yield [call("echo")]).length })`,
			map[int][]string{0: {`1`}},
			"calls echo{} read=1\nend 1 read=1",
		},
		{
			"empty list returns an empty list without a step",
			`role("root", function* () { return yield [] })`,
			map[int][]string{0: {`1`}},
			`end [] read=1`,
		},
		{
			"hire is a call that spawns an agent by the name of its role",
			`role("root", function* () { const a = yield hire("echo", "Read."); return a.echo.roleId })`,
			map[int][]string{0: {`1`}},
			`calls spawn_agent_with_task{"roleId":"echo","taskBrief":{"objective":"Read.","constraints":[],"inputs":"none","outputs":"an answer","completion_criteria":"the answer has what the objective asks for"},"initialMessage":{"text":"Read."}} read=1` +
				"\nend \"echo\" read=1",
		},
		{
			"hire passes data, and may be one of a list",
			`role("root", function* () { const [a, b] = yield [hire("r", "Read.", {path: "f"}), call("fail")]; return [a.echo.initialMessage, a.echo.taskBrief.inputs, b.error] })`,
			map[int][]string{0: {`1`}},
			`calls spawn_agent_with_task{"roleId":"r","taskBrief":{"objective":"Read.","constraints":[],"inputs":"the field data of the first message","outputs":"an answer","completion_criteria":"the answer has what the objective asks for"},"initialMessage":{"text":"Read.","data":{"path":"f"}}} fail{} read=1` +
				"\nend [{\"text\":\"Read.\",\"data\":{\"path\":\"f\"}},\"the field data of the first message\",\"tool_not_available\"] read=1",
		},
		{
			"failure is an object with error",
			`role("root", function* () { const r = yield call("fail"); return r.error })`,
			map[int][]string{0: {`1`}},
			"calls fail{} read=1\nend \"tool_not_available\" read=1",
		},
		{
			"say does not end the turn",
			`role("root", function* () { yield say("one"); yield say("two"); return })`,
			map[int][]string{0: {`1`}},
			"continue one read=1\ncontinue two read=1\nend null read=1",
		},
		{
			"receive of an available message",
			`role("root", function* () { const m = yield receive(); return m.payload })`,
			map[int][]string{0: {`1`, `2`}},
			`end 2 read=2`,
		},
		{
			"receive waits for a message",
			`role("root", function* () { const m = yield receive(); return m.payload })`,
			map[int][]string{0: {`1`}, 1: {`2`}},
			"wait read=1\nend 2 read=2",
		},
		{
			"receive waits again without a message",
			`role("root", function* () { const m = yield receive(); return m.payload })`,
			map[int][]string{0: {`1`}, 3: {`2`}},
			"wait read=1\nwait read=1\nwait read=1\nend 2 read=2",
		},
		{
			"messages during a call are received in order",
			`role("root", function* () { yield call("echo"); const a = yield receive(), b = yield receive(); return [a.payload, b.payload] })`,
			map[int][]string{0: {`1`}, 1: {`2`, `3`}},
			"calls echo{} read=1\nend [2,3] read=3",
		},
		{
			"messages after a wait are received in order",
			`role("root", function* () { const a = yield receive(); yield say("got " + a.payload); const b = yield receive(); return b.payload })`,
			map[int][]string{0: {`1`}, 1: {`2`, `3`}},
			"wait read=1\ncontinue got 2 read=2\nend 3 read=3",
		},
		{
			"later message starts the script again",
			`let n = 0; role("root", function* (task) { n++; return [n, task.payload] })`,
			map[int][]string{0: {`1`}, 1: {`2`}},
			"end [1,1] read=1\nend [1,2] read=2",
		},
		{
			"unreceived messages start the script one after the other",
			`role("root", function* (task) { if (task.payload === 1) yield call("echo"); return task.payload })`,
			map[int][]string{0: {`1`}, 1: {`2`, `3`}},
			"calls echo{} read=1\nend 1 read=1\nend 2 read=2\nend 3 read=3",
		},
		{
			"console lines belong to the next answer",
			`console.log("top"); role("root", function* () { console.log("a", {b: 1}); yield say("x"); console.log("c"); yield receive(); console.log("d"); return 1 })`,
			map[int][]string{0: {`1`}, 2: {`2`}},
			"continue x read=1 log=[\"top\" \"a {\\\"b\\\":1}\"]\nwait read=1 log=[\"c\"]\nend 1 read=2 log=[\"d\"]",
		},
		{
			"default script",
			`role("other", function* () { return 1 }); role("*", function* () { return self.role })`,
			map[int][]string{0: {`1`}},
			`end "root" read=1`,
		},
		{
			"self and tools",
			`role("root", function* () { return [self, tools] })`,
			map[int][]string{0: {`1`}},
			`end [{"id":"agent-root","role":"root","parent":"","task":"task-1","state":"open"},["echo","fail"]] read=1`,
		},
	}
	for _, tt := range tests {
		for _, cache := range []struct {
			name string
			size int
		}{{"cached", 0}, {"replayed", -1}} {
			t.Run(tt.name+", "+cache.name, func(t *testing.T) {
				rt := newFakeRuntime("root")
				if err := rt.run(t, newModel(t, script.Config{CacheSize: cache.size}, tt.source), tt.inbox); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, strings.Join(rt.lines, "\n")); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestNew_AcceptsScriptsOfDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/agent-scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```js\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Error("docs/agent-scripts.md has no scripts")
	}
	for _, block := range blocks {
		m, err := script.New("agents.js", block[1])
		if err != nil {
			t.Errorf("got %v for\n%s", err, block[1])
			continue
		}
		m.Close()
	}
}

func TestModel_ReturnedStringIsAlsoText(t *testing.T) {
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	a, err := ask(t, newModel(t, script.Config{}, `role("root", function* () { return "done" })`), rt.request())
	if err != nil {
		t.Fatal(err)
	}
	if want := (&model.Answer{Finish: model.FinishResult, Text: "done", Value: []byte(`"done"`), MessagesRead: 1}); !cmp.Equal(want, a) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, a))
	}
}

func TestModel_PassesResultsToScript(t *testing.T) {
	tests := []struct{ name, result, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"string", `"text"`, `"text"`},
		{"null", `null`, `null`},
		{"number", `7`, `7`},
		{"empty result is null", ``, `null`},
		{"not JSON becomes a string", `plain`, `"plain"`},
		{"failure with error", `!{"error":"x","k":1}`, `{"error":"x","k":1}`},
		{"failure as a string", `!"boom"`, `{"content":"boom","error":"tool_execution_failed","message":"boom","toolName":"t"}`},
		{"failure of another form", `!{"k":1}`, `{"content":{"k":1},"error":"tool_execution_failed","message":"{\"k\":1}","toolName":"t"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rt := newFakeRuntime("root")
			rt.tool = func(string, string) string { return tt.result }
			err := rt.run(t, newModel(t, script.Config{}, `role("root", function* () { return yield call("t") })`), map[int][]string{0: {`1`}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := rt.lines[1], "end "+tt.want+" read=1"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestNew_RejectsInvalidSources(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"not JavaScript", "role('a', function* () {\n  let = ;\n})", "agents.js:2:9: SyntaxError"},
		{"top level throws", "\nnull.x", "agents.js:2:5: TypeError"},
		{"no role", "let a = 1", "no script"},
		{"script is not a generator", "role('a', function () {})", `agents.js:1:5: TypeError: role("a", function*): the script is not a generator`},
		{"role with two scripts", "role('a', function* () {})\nrole('a', function* () {})", `agents.js:2:5: TypeError: role("a") is defined twice`},
		{"clock at the top level", "Date.now()", "Date.now"},
		{"self at the top level", "self.role", "agents.js:1:5: TypeError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := script.New("agents.js", []byte(tt.source))
			wantCode(t, err, errcode.InvalidConfig, tt.want)
		})
	}
}

func TestModel_ReportsScriptErrors(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"throw with line", "role('root', function* () {\n  yield say('x')\n  null.x\n})", "step 2: agents.js:3:7: TypeError"},
		{"thrown string", "role('root', function* () { throw 'no' })", "agents.js: no"},
		{"yielded number", "role('root', function* () { yield 7 })", "the script yielded 7: yield call()"},
		{"yielded nothing", "role('root', function* () { yield })", "the script yielded undefined"},
		{"yielded object", "role('root', function* () { yield {op: 'say', text: 'x'} })", `the script yielded {"op":"say","text":"x"}`},
		{"list with a number", "role('root', function* () { yield [call('a'), 1] })", "the script yielded 1"},
		{"list with a receive", "role('root', function* () { yield [receive()] })", "a list with receive()"},
		{"arguments are a string", "role('root', function* () {\n yield call('a', 'b') })", `agents.js:2:12: TypeError: call("a", args): args is b, not an object`},
		{"arguments are a list", "role('root', function* () { yield call('a', [1]) })", "not an object"},
		{"arguments are not JSON", "role('root', function* () { yield call('a', {n: 1n}) })", "BigInt"},
		{"tool without a name", "role('root', function* () { yield call({}) })", "not a name"},
		{"say without text", "role('root', function* () { yield say({}) })", "not a string"},
		{"returned function", "role('root', function* () { return () => 1 })", "returned a function"},
		{"endless loop", "role('root', function* () { for (;;); })", "ran out of time"},
		{"endless loop of empty lists", "role('root', function* () { for (;;) yield [] })", "ran out of time"},
		{"memory bomb", "role('root', function* () { for (const a = [];;) a.push('x'.repeat(1000) + a.length) })", "out of memory"},
		{"randomness", "role('root', function* () { return Math.random() })", "Math.random"},
		{"no script for the role", "role('analyst', function* () {}); role('clerk', function* () {})", `no script for role "root"; it has scripts for analyst, clerk`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := script.Config{Memory: 8 << 20, StepTimeout: time.Minute}
			if strings.Contains(tt.want, "time") {
				c.StepTimeout = 100 * time.Millisecond
			}
			err := newFakeRuntime("root").run(t, newModel(t, c, tt.source), map[int][]string{0: {`1`}})
			e := wantCode(t, err, errcode.LLMCallFailed, tt.want)
			if e.Details["read"] != 1 {
				t.Errorf("details %v, want read 1", e.Details)
			}
		})
	}
}

// An error names the file, the line and the column of what caused it.
func TestModel_ErrorsNamePlace(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"exception", "\n  null.x;", "agents.js:3:7: TypeError: cannot read"},
		{"call without yield before a receive", "\n  call('x', {});\n  yield receive();", `agents.js:3:7: TypeError: call("x", …) without yield does nothing: write yield call("x", …)`},
		{"call without yield before the end", "\n  const c = call('x');\n  return 1;", `agents.js:3:17: TypeError: call("x", …) without yield`},
		{"returned call", "\n  return call('x');", `agents.js:3:14: TypeError: call("x", …) without yield`},
		{"hire without yield", "\n  hire('x', 'y');", `agents.js:3:7: TypeError: hire("x", …) without yield does nothing: write yield hire("x", …)`},
		{"hire without text", "\n  yield hire('x');", `agents.js:3:13: TypeError: hire("x", text, data): the text is undefined, not a string`},
		{"hire of no role", "\n  yield hire({id: 1}, 'y');", `TypeError: hire(role, text, data): the role is {"id":1}, not a name`},
		{"hire with a function", "\n  yield hire('x', 'y', () => 1);", `TypeError: hire("x", text, data): the data is a function, which JSON cannot represent`},
		{"say without yield", "\n  say('x');", "agents.js:3:6: TypeError: say(…) without yield"},
		{"receive without yield", "\n  yield say('x');\n  receive();", "agents.js:4:10: TypeError: receive() without yield"},
		{"wrong yield", "\n  yield say('x');\n  yield 42;", "agents.js:4:3: TypeError: the script yielded 42"},
		{"wrong yield that is caught", "\n  try { yield 42; } catch { yield say('x'); }", "agents.js:3:9: TypeError: the script yielded 42"},
		{"wrong yield of another generator", "\n  yield* other();", "agents.js:1:23: TypeError: the script yielded 7"},
		{"wrong entry of a list", "\n  yield [call('x'), say('y')];", "agents.js:3:24: TypeError: the script yielded a list with say()"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := "function* other() {   yield 7; }\nrole('root', function* () {" + tt.source + "\n})"
			err := newFakeRuntime("root").run(t, newModel(t, script.Config{}, source), map[int][]string{0: {`1`}})
			wantCode(t, err, errcode.LLMCallFailed, tt.want)
		})
	}
}

// A call may be made before it is yielded.
func TestModel_CallYieldedLater(t *testing.T) {
	rt := newFakeRuntime("root")
	m := newModel(t, script.Config{}, `role("root", function* () {
		const calls = [call("echo", {n: 1}), call("echo", {n: 2})];
		yield say("first");
		return (yield calls).length;
	})`)
	if err := rt.run(t, m, map[int][]string{0: {`1`}}); err != nil {
		t.Fatal(err)
	}
	if got, want := rt.lines[len(rt.lines)-1], "end 2 read=1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestModel_StartsAgainAfterFailedTurn(t *testing.T) {
	rt := newFakeRuntime("root")
	m := newModel(t, script.Config{}, `role("root", function* (task) { if (task.payload === 1) null.x; return task.payload })`)
	e := wantCode(t, rt.run(t, m, map[int][]string{0: {`1`, `2`}}), errcode.LLMCallFailed)
	rt.items = append(rt.items, model.Item{Answer: &model.Answer{Finish: model.FinishEnd, Text: e.Message, MessagesRead: e.Details["read"].(int)}})
	if err := rt.run(t, m, nil); err != nil || rt.lines[0] != "end 2 read=2" {
		t.Errorf("got %q, %v", rt.lines, err)
	}
}

// The runtime may end a turn although the cached script would continue.
func TestModel_StartsAgainAfterTurnEndedByRuntime(t *testing.T) {
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	m := newModel(t, script.Config{}, `role("root", function* (task) { yield call("echo"); return task.payload })`)
	if _, err := ask(t, m, rt.request()); err != nil {
		t.Fatal(err)
	}
	rt.record(&model.Answer{Finish: model.FinishEnd, MessagesRead: 1})
	rt.addMessage(`2`)
	if err := rt.run(t, m, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"end  read=1", "calls echo{} read=2", "end 2 read=2"}, rt.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With CheckLater the first use runs the source and returns what New would have returned.
func TestConfig_ChecksLater(t *testing.T) {
	late := script.Config{CheckLater: true}
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	invalid := newModel(t, late, `role("root"`)
	for range 2 {
		_, err := ask(t, invalid, rt.request())
		wantCode(t, err, errcode.InvalidConfig, "agents.js:1")
	}
	if got := invalid.Roles(); len(got) != 0 {
		t.Errorf("got the roles %v of an invalid source", got)
	}
	const source = `role("root", function* () { return 7 })`
	if answer, err := ask(t, newModel(t, late, source), rt.request()); err != nil || string(answer.Value) != "7" {
		t.Errorf("got %+v, %v", answer, err)
	}
	if got := newModel(t, late, source).Roles(); len(got) != 1 || got[0] != "root" {
		t.Errorf("got the roles %v", got)
	}
}

func TestModel_RejectsChangedScript(t *testing.T) {
	const before = `role("root", function* () { yield call("echo", {a: 1, b: 2}); yield say("hi"); yield receive(); return 1 })`
	tests := []struct{ name, after, step, was, is string }{
		{"different tool", `role("root", function* () { yield call("other", {a: 1, b: 2}) })`, "step 1", `call("echo", {"a":1,"b":2})`, `call("other", {"a":1,"b":2})`},
		{"different arguments", `role("root", function* () { yield call("echo", {a: 2}) })`, "step 1", `call("echo"`, `call("echo", {"a":2})`},
		{"more calls", `role("root", function* () { yield [call("echo", {a: 1, b: 2}), call("echo")] })`, "step 1", `call("echo"`, `[call("echo", {"a":1,"b":2}), call("echo", {})]`},
		{"return instead of a call", `role("root", function* () { return 5 })`, "step 1", `call("echo"`, `return 5`},
		{"different text", `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield say("ho") })`, "step 2", `say("hi")`, `say("ho")`},
		{"receive too early", `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield receive() })`, "step 2", `say("hi")`, `receive()`},
		{"call instead of a receive", `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield say("hi"); yield call("echo") })`, "step 3", `receive()`, `call("echo", {})`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rt := newFakeRuntime("root")
			if err := rt.run(t, newModel(t, script.Config{}, before), map[int][]string{0: {`1`}}); err != nil {
				t.Fatal(err)
			}
			_, err := ask(t, newModel(t, script.Config{}, tt.after), rt.request())
			wantCode(t, err, errcode.ScriptDiverged, tt.step, tt.was, tt.is)
		})
	}
}

func TestModel_IgnoresOrderOfKeys(t *testing.T) {
	rt := newFakeRuntime("root")
	if err := rt.run(t, newModel(t, script.Config{}, `role("root", function* () { yield call("echo", {a: 1, b: 2}); yield receive() })`), map[int][]string{0: {`1`}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, newModel(t, script.Config{}, `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield receive() })`), rt.request()); err != nil {
		t.Error(err)
	}
}

// The live step sees the tools and the state of the request.
func TestModel_RecordedStepsSeeRecordedState(t *testing.T) {
	const source = `role("root", function* () {
		const seen = [];
		for (let i = 0; i < 3; i++) { seen.push([self.state, ...tools]); yield say("x") }
		seen.push([self.state, ...tools]);
		return seen;
	})`
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	say := func(state string, tools ...string) {
		rt.items = append(rt.items, model.Item{Answer: &model.Answer{Finish: model.FinishContinue, Text: "x", MessagesRead: 1, State: state, Tools: tools}})
	}
	say("s1", "a")
	say("s2") // the tools are the same as before
	say("s3", "b", "c")
	rt.self.State, rt.tools = "now", []string{"d"}
	a, err := ask(t, newModel(t, script.Config{}, source), rt.request())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Value), `[["s1","a"],["s2","a"],["s3","b","c"],["now","d"]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// If an answer is lost before it is recorded, the step is asked for again, possibly with
// another state.
func TestModel_RepeatedStepSeesNewRequest(t *testing.T) {
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	m := newModel(t, script.Config{}, `role("root", function* () { yield say(self.state) })`)
	for _, state := range []string{"one", "one", "two"} {
		rt.self.State = state
		a, err := ask(t, m, rt.request())
		if err != nil || a.Text != state {
			t.Fatalf("got %v, %v; want %q", a, err, state)
		}
	}
}

// Steps before the first recorded tools see those of the request.
func TestModel_UnrecordedToolsComeFromRequest(t *testing.T) {
	rt := newFakeRuntime("root")
	rt.omitTools = true
	rt.addMessage(`1`)
	m := newModel(t, script.Config{}, `role("root", function* () { const before = tools; yield say("x"); yield say("y"); return before })`)
	var last *model.Answer
	for _, tool := range []string{"a", "a", "b"} {
		rt.tools = []string{tool}
		a, err := ask(t, m, rt.request())
		if err != nil {
			t.Fatal(err)
		}
		rt.record(a)
		rt.omitTools = false // the second answer records its tools
		last = a
	}
	if got := string(last.Value); got != `["b"]` {
		t.Errorf("got %s, want what a replay returns", got)
	}
}

func TestModel_IgnoresMessageThatCameTooLateForWait(t *testing.T) {
	m := newModel(t, script.Config{}, `role("root", function* () { const m = yield receive(); yield say("x"); return m.payload })`)
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	a, err := ask(t, m, rt.request())
	if err != nil {
		t.Fatal(err)
	}
	rt.addMessage(`2`) // while the model was being asked
	rt.record(a)
	if err := rt.run(t, newModel(t, script.Config{}, `role("root", function* () { const m = yield receive(); yield say("x"); return m.payload })`), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"wait read=1", "continue x read=2", "end 2 read=2"}
	if diff := cmp.Diff(want, rt.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two conversations of one agent id differ in a payload only.
func TestModel_CacheChecksConversation(t *testing.T) {
	m := newModel(t, script.Config{}, `role("root", function* (task) { yield call("echo"); return task.payload })`)
	for _, payload := range []string{`1`, `2`} {
		rt := newFakeRuntime("root")
		rt.addMessage(payload)
		a, err := ask(t, m, rt.request())
		if err != nil {
			t.Fatal(err)
		}
		rt.record(a)
		other := newFakeRuntime("root")
		other.items = append([]model.Item{}, rt.items...)
		message := *other.items[0].Message
		message.Payload = []byte(`3`)
		other.items[0] = model.Item{Message: &message}
		a, err = ask(t, m, other.request())
		if err != nil || string(a.Value) != `3` {
			t.Errorf("got %v, %v; want the payload of the second conversation", a, err)
		}
	}
}

func TestModel_ReportsMissingResults(t *testing.T) {
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	m := newModel(t, script.Config{}, `role("root", function* () { yield call("echo") })`)
	a, err := ask(t, m, rt.request())
	if err != nil {
		t.Fatal(err)
	}
	rt.record(a)
	rt.items = rt.items[:len(rt.items)-1]
	_, err = ask(t, m, rt.request())
	wantCode(t, err, errcode.Internal, "has no result")
}

func TestModel_ServesAgentsConcurrently(t *testing.T) {
	m := newModel(t, script.Config{CacheSize: 3}, `role("*", function* () { let n = 0; for (let i = 0; i < 10; i++) n += (yield call("echo", {i})).echo.i; return [self.role, n] })`)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			role := fmt.Sprint("role", i)
			rt := newFakeRuntime(role)
			if err := rt.run(t, m, map[int][]string{0: {`1`}}); err != nil {
				t.Error(err)
			}
			if got, want := rt.lines[10], fmt.Sprintf("end [%q,45] read=1", role); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	all.Wait()
}

func TestModel_ServesOneAgentConcurrently(t *testing.T) {
	m := newModel(t, script.Config{}, `role("root", function* () { yield say("x") })`)
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if a, err := ask(t, m, rt.request()); err != nil || a.Text != "x" {
				t.Errorf("got %v, %v", a, err)
			}
		})
	}
	all.Wait()
}

func TestModel_GenerateReturnsContextError(t *testing.T) {
	m := newModel(t, script.Config{StepTimeout: time.Minute}, `role("root", function* () { for (;;); })`)
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, err := range m.Generate(ctx, rt.request()) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the error of the context", err)
		}
	}
}

func TestModel_GenerateAfterClose(t *testing.T) {
	m := newModel(t, script.Config{}, `role("root", function* () { yield say("x") })`)
	rt := newFakeRuntime("root")
	rt.addMessage(`1`)
	if _, err := ask(t, m, rt.request()); err != nil {
		t.Fatal(err)
	}
	m.Close()
	m.Close()
	_, err := ask(t, m, rt.request())
	wantCode(t, err, errcode.LLMCallFailed, "closed")
}

// BenchmarkModelStep measures one step after a number of others, with the virtual machine
// cached and with the whole conversation replayed.
func BenchmarkModelStep(b *testing.B) {
	const source = `role("root", function* () { for (let i = 0; ; i++) yield call("echo", {i}) })`
	for _, steps := range []int{10, 1000} {
		m := newModel(b, script.Config{}, source)
		rt := newFakeRuntime("root")
		rt.addMessage(`1`)
		for range steps {
			a, err := ask(b, m, rt.request())
			if err != nil {
				b.Fatal(err)
			}
			rt.record(a)
		}
		b.Run(fmt.Sprintf("replayed, %d steps", steps), func(b *testing.B) {
			uncached := newModel(b, script.Config{CacheSize: -1}, source)
			for b.Loop() {
				if _, err := ask(b, uncached, rt.request()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("cached, %d steps and more", steps), func(b *testing.B) {
			for b.Loop() {
				a, err := ask(b, m, rt.request())
				if err != nil {
					b.Fatal(err)
				}
				rt.record(a)
			}
		})
	}
}
