package script_test

import (
	"context"
	"errors"
	"fmt"
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
	// end {"done":"the logs","tools":["read_file"]}
}

// Each case runs twice: with the brain kept between the steps, and fed anew at
// every step, as after a restart.
func TestBrains(t *testing.T) {
	tests := []struct {
		name   string
		source string
		mail   map[int][]string // messages that come before the n-th question
		want   string
	}{
		{
			"the message that starts a brain is its task",
			`role("root", function* (task) { return [task.id, task.from, task.payload, task.taskId, task.createdAt] })`,
			map[int][]string{0: {`{"text":"go"}`}},
			`end ["m1","user",{"text":"go"},"task-1","2026-01-02T03:04:01Z"] read=1`,
		},
		{
			"without a message there is nothing to do",
			`role("root", function* () { return 1 })`,
			nil,
			`wait read=0`,
		},
		{
			"a call gives its result parsed",
			`role("root", function* () { const r = yield call("echo", {a: [1]}); return r.echo.a })`,
			map[int][]string{0: {`1`}},
			"calls echo{\"a\":[1]} read=1\nend [1] read=1",
		},
		{
			"several calls of one answer give their results in order",
			`role("root", function* () { const [a, b] = yield [call("echo", {n: 1}), call("echo", {n: 2})]; return [a.echo.n, b.echo.n] })`,
			map[int][]string{0: {`1`}},
			"calls echo{\"n\":1} echo{\"n\":2} read=1\nend [1,2] read=1",
		},
		{
			"a list of one call gives a list of one result",
			`role("root", function* () { return (yield [call("echo")]).length })`,
			map[int][]string{0: {`1`}},
			"calls echo{} read=1\nend 1 read=1",
		},
		{
			"an empty list gives an empty list at once",
			`role("root", function* () { return yield [] })`,
			map[int][]string{0: {`1`}},
			`end [] read=1`,
		},
		{
			"a failure is an object with error, never an exception",
			`role("root", function* () { const r = yield call("fail"); return r.error })`,
			map[int][]string{0: {`1`}},
			"calls fail{} read=1\nend \"tool_not_available\" read=1",
		},
		{
			"text is said without ending the turn",
			`role("root", function* () { yield say("one"); yield say("two"); return })`,
			map[int][]string{0: {`1`}},
			"continue one read=1\ncontinue two read=1\nend null read=1",
		},
		{
			"a message that has come is received at once",
			`role("root", function* () { const m = yield receive(); return m.payload })`,
			map[int][]string{0: {`1`, `2`}},
			`end 2 read=2`,
		},
		{
			"a message that has not come is waited for",
			`role("root", function* () { const m = yield receive(); return m.payload })`,
			map[int][]string{0: {`1`}, 1: {`2`}},
			"wait read=1\nend 2 read=2",
		},
		{
			"asked again without a message a brain waits again",
			`role("root", function* () { const m = yield receive(); return m.payload })`,
			map[int][]string{0: {`1`}, 3: {`2`}},
			"wait read=1\nwait read=1\nwait read=1\nend 2 read=2",
		},
		{
			"messages that come during a call stand in order after it",
			`role("root", function* () { yield call("echo"); const a = yield receive(), b = yield receive(); return [a.payload, b.payload] })`,
			map[int][]string{0: {`1`}, 1: {`2`, `3`}},
			"calls echo{} read=1\nend [2,3] read=3",
		},
		{
			"a message that comes after a wait does not overtake",
			`role("root", function* () { const a = yield receive(); yield say("got " + a.payload); const b = yield receive(); return b.payload })`,
			map[int][]string{0: {`1`}, 1: {`2`, `3`}},
			"wait read=1\ncontinue got 2 read=2\nend 3 read=3",
		},
		{
			"a later message starts the brain again, from the top",
			`let n = 0; role("root", function* (task) { n++; return [n, task.payload] })`,
			map[int][]string{0: {`1`}, 1: {`2`}},
			"end [1,1] read=1\nend [1,2] read=2",
		},
		{
			"messages nobody received start brains of their own, one after the other",
			`role("root", function* (task) { if (task.payload === 1) yield call("echo"); return task.payload })`,
			map[int][]string{0: {`1`}, 1: {`2`, `3`}},
			"calls echo{} read=1\nend 1 read=1\nend 2 read=2\nend 3 read=3",
		},
		{
			"the console goes to the answer that follows, once",
			`console.log("top"); role("root", function* () { console.log("a", {b: 1}); yield say("x"); console.log("c"); yield receive(); console.log("d"); return 1 })`,
			map[int][]string{0: {`1`}, 2: {`2`}},
			"continue x read=1 log=[\"top\" \"a {\\\"b\\\":1}\"]\nwait read=1 log=[\"c\"]\nend 1 read=2 log=[\"d\"]",
		},
		{
			"the default serves roles without a brain of their own",
			`role("other", function* () { return 1 }); role("*", function* () { return self.role })`,
			map[int][]string{0: {`1`}},
			`end "root" read=1`,
		},
		{
			"self and tools are there",
			`role("root", function* () { return [self, tools] })`,
			map[int][]string{0: {`1`}},
			`end [{"id":"agent-root","role":"root","parent":"","task":"task-1","state":"open"},["echo","fail"]] read=1`,
		},
	}
	for _, tt := range tests {
		for _, keep := range []struct {
			name string
			most int
		}{{"kept", 0}, {"fed anew", -1}} {
			t.Run(tt.name+", "+keep.name, func(t *testing.T) {
				p := newPlay("root")
				if err := p.run(t, load(t, script.Config{CacheSize: keep.most}, tt.source), tt.mail); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, strings.Join(p.lines, "\n")); diff != "" {
					t.Errorf("what was answered (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAReturnedStringIsTextToo(t *testing.T) {
	p := newPlay("root")
	p.tell(`1`)
	a, err := ask(t, load(t, script.Config{}, `role("root", function* () { return "done" })`), p.request())
	if err != nil {
		t.Fatal(err)
	}
	if want := (&model.Answer{Finish: model.FinishEnd, Text: "done", Value: []byte(`"done"`), MessagesRead: 1}); !cmp.Equal(want, a) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, a))
	}
}

func TestResultsAreReadAsTheyAre(t *testing.T) {
	tests := []struct{ name, result, want string }{
		{"an object", `{"a":1}`, `{"a":1}`},
		{"a JSON string is the string", `"text"`, `"text"`},
		{"null", `null`, `null`},
		{"a number", `7`, `7`},
		{"nothing is null", ``, `null`},
		{"what is no JSON is a string", `plain`, `"plain"`},
		{"a failure with error stays", `!{"error":"x","k":1}`, `{"error":"x","k":1}`},
		{"a failure that is only text gets its shape", `!"boom"`, `{"content":"boom","error":"tool_execution_failed","message":"boom","toolName":"t"}`},
		{"a failure of another shape gets its shape", `!{"k":1}`, `{"content":{"k":1},"error":"tool_execution_failed","message":"{\"k\":1}","toolName":"t"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay("root")
			p.tool = func(string, string) string { return tt.result }
			err := p.run(t, load(t, script.Config{}, `role("root", function* () { return yield call("t") })`), map[int][]string{0: {`1`}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := p.lines[1], "end "+tt.want+" read=1"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"what is no JavaScript, with the line", "role('a', function* () {\n  let = ;\n})", "brain.js:2: SyntaxError"},
		{"a top level that throws, with the line", "\nnull.x", "brain.js:2: TypeError"},
		{"a source without roles", "let a = 1", "no brain"},
		{"a brain that is no generator", "role('a', function () {})", `brain.js:1: TypeError: role("a", function*): the brain is not a generator`},
		{"a role with two brains", "role('a', function* () {})\nrole('a', function* () {})", `brain.js:2: TypeError: role("a") is registered twice`},
		{"a look at the clock", "Date.now()", "Date.now"},
		{"a look at itself before a step", "self.role", "brain.js:1: TypeError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := script.New("brain.js", []byte(tt.source))
			wantCode(t, err, errcode.InvalidConfig, tt.want)
		})
	}
}

func TestBrainsThatFail(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"a throw names its line", "role('root', function* () {\n  yield say('x')\n  null.x\n})", "step 2: brain.js:3: TypeError"},
		{"a thrown string", "role('root', function* () { throw 'no' })", "brain.js: no"},
		{"a yielded number", "role('root', function* () { yield 7 })", "the brain yielded 7: only call()"},
		{"a yielded nothing", "role('root', function* () { yield })", "the brain yielded undefined"},
		{"a yielded object of its own", "role('root', function* () { yield {op: 'say', text: 'x'} })", `the brain yielded {"op":"say","text":"x"}`},
		{"a list with something else", "role('root', function* () { yield [call('a'), 1] })", "the brain yielded 1"},
		{"a list with a receive", "role('root', function* () { yield [receive()] })", "a list with receive()"},
		{"arguments that are no object", "role('root', function* () {\n yield call('a', 'b') })", `brain.js:2: TypeError: call("a", args): args is b, not an object`},
		{"arguments that are a list", "role('root', function* () { yield call('a', [1]) })", "not an object"},
		{"arguments JSON cannot carry", "role('root', function* () { yield call('a', {n: 1n}) })", "BigInt"},
		{"a tool without a name", "role('root', function* () { yield call({}) })", "not a name"},
		{"a say without text", "role('root', function* () { yield say({}) })", "not a string"},
		{"a returned function", "role('root', function* () { return () => 1 })", "returned a function"},
		{"a loop", "role('root', function* () { for (;;); })", "ran out of time"},
		{"a loop of empty lists", "role('root', function* () { for (;;) yield [] })", "ran out of time"},
		{"a memory bomb", "role('root', function* () { for (const a = [];;) a.push('x'.repeat(1000) + a.length) })", "out of memory"},
		{"chance", "role('root', function* () { return Math.random() })", "Math.random"},
		{"no brain for the role", "role('analyst', function* () {}); role('clerk', function* () {})", `no brain for role "root"; it has brains for ["analyst" "clerk"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := script.Config{Memory: 8 << 20, StepTimeout: time.Minute}
			if strings.Contains(tt.want, "time") {
				c.StepTimeout = 100 * time.Millisecond
			}
			err := newPlay("root").run(t, load(t, c, tt.source), map[int][]string{0: {`1`}})
			e := wantCode(t, err, errcode.LLMCallFailed, tt.want)
			if e.Details["read"] != 1 {
				t.Errorf("details %v, want read 1", e.Details)
			}
		})
	}
}

func TestAfterAFailedTurnTheNextMessageStartsAnew(t *testing.T) {
	p := newPlay("root")
	m := load(t, script.Config{}, `role("root", function* (task) { if (task.payload === 1) null.x; return task.payload })`)
	e := wantCode(t, p.run(t, m, map[int][]string{0: {`1`, `2`}}), errcode.LLMCallFailed)
	p.items = append(p.items, model.Item{Answer: &model.Answer{Finish: model.FinishEnd, Text: e.Message, MessagesRead: e.Details["read"].(int)}})
	if err := p.run(t, m, nil); err != nil || p.lines[0] != "end 2 read=2" {
		t.Errorf("got %q, %v", p.lines, err)
	}
}

// The runtime ended a turn itself, where a kept brain wanted to go on.
func TestAfterATurnThatWasEndedTheNextMessageStartsAnew(t *testing.T) {
	p := newPlay("root")
	p.tell(`1`)
	m := load(t, script.Config{}, `role("root", function* (task) { yield call("echo"); return task.payload })`)
	if _, err := ask(t, m, p.request()); err != nil {
		t.Fatal(err)
	}
	p.record(&model.Answer{Finish: model.FinishEnd, MessagesRead: 1})
	p.tell(`2`)
	if err := p.run(t, m, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"end  read=1", "calls echo{} read=2", "end 2 read=2"}, p.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABrainThatChangedDiverges(t *testing.T) {
	const before = `role("root", function* () { yield call("echo", {a: 1, b: 2}); yield say("hi"); yield receive(); return 1 })`
	tests := []struct{ name, after, step, was, is string }{
		{"another tool", `role("root", function* () { yield call("other", {a: 1, b: 2}) })`, "step 1", `call("echo", {"a":1,"b":2})`, `call("other", {"a":1,"b":2})`},
		{"other arguments", `role("root", function* () { yield call("echo", {a: 2}) })`, "step 1", `call("echo"`, `call("echo", {"a":2})`},
		{"more calls", `role("root", function* () { yield [call("echo", {a: 1, b: 2}), call("echo")] })`, "step 1", `call("echo"`, `[call("echo", {"a":1,"b":2}), call("echo", {})]`},
		{"a return instead", `role("root", function* () { return 5 })`, "step 1", `call("echo"`, `return 5`},
		{"another text", `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield say("ho") })`, "step 2", `say("hi")`, `say("ho")`},
		{"a receive too early", `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield receive() })`, "step 2", `say("hi")`, `receive()`},
		{"a call instead of a receive", `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield say("hi"); yield call("echo") })`, "step 3", `receive()`, `call("echo", {})`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay("root")
			if err := p.run(t, load(t, script.Config{}, before), map[int][]string{0: {`1`}}); err != nil {
				t.Fatal(err)
			}
			_, err := ask(t, load(t, script.Config{}, tt.after), p.request())
			wantCode(t, err, errcode.ScriptDiverged, tt.step, tt.was, tt.is)
		})
	}
}

func TestTheOrderOfKeysIsNoDivergence(t *testing.T) {
	p := newPlay("root")
	if err := p.run(t, load(t, script.Config{}, `role("root", function* () { yield call("echo", {a: 1, b: 2}); yield receive() })`), map[int][]string{0: {`1`}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, load(t, script.Config{}, `role("root", function* () { yield call("echo", {b: 2, a: 1}); yield receive() })`), p.request()); err != nil {
		t.Error(err)
	}
}

// A recorded step sees the tools and the state that were recorded with it, the
// live one those of the request.
func TestStepsSeeWhatWasRecordedWithThem(t *testing.T) {
	const source = `role("root", function* () {
		const seen = [];
		for (let i = 0; i < 3; i++) { seen.push([self.state, ...tools]); yield say("x") }
		seen.push([self.state, ...tools]);
		return seen;
	})`
	p := newPlay("root")
	p.tell(`1`)
	say := func(state string, tools ...string) {
		p.items = append(p.items, model.Item{Answer: &model.Answer{Finish: model.FinishContinue, Text: "x", MessagesRead: 1, State: state, Tools: tools}})
	}
	say("s1", "a")
	say("s2") // the tools are the same as before
	say("s3", "b", "c")
	p.self.State, p.tools = "now", []string{"d"}
	a, err := ask(t, load(t, script.Config{}, source), p.request())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Value), `[["s1","a"],["s2","a"],["s3","b","c"],["now","d"]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The first answer is lost before it is recorded, and the world has moved when
// the step is asked for again.
func TestAStepThatIsAskedAgainSeesTheNewRequest(t *testing.T) {
	p := newPlay("root")
	p.tell(`1`)
	m := load(t, script.Config{}, `role("root", function* () { yield say(self.state) })`)
	for _, state := range []string{"one", "one", "two"} {
		p.self.State = state
		a, err := ask(t, m, p.request())
		if err != nil || a.Text != state {
			t.Fatalf("got %v, %v; want %q", a, err, state)
		}
	}
}

// Before any tools were recorded, steps are shown those of the request.
func TestAKeptBrainDoesNotRememberToolsThatWereNotRecorded(t *testing.T) {
	p := newPlay("root")
	p.terse = true
	p.tell(`1`)
	m := load(t, script.Config{}, `role("root", function* () { const before = tools; yield say("x"); yield say("y"); return before })`)
	var last *model.Answer
	for _, tool := range []string{"a", "a", "b"} {
		p.tools = []string{tool}
		a, err := ask(t, m, p.request())
		if err != nil {
			t.Fatal(err)
		}
		p.record(a)
		p.terse = false // the second answer records its tools
		last = a
	}
	if got := string(last.Value); got != `["b"]` {
		t.Errorf("got %s, want what feeding it anew gives", got)
	}
}

func TestAMessageRecordedBeforeAWaitItCameTooLateFor(t *testing.T) {
	m := load(t, script.Config{}, `role("root", function* () { const m = yield receive(); yield say("x"); return m.payload })`)
	p := newPlay("root")
	p.tell(`1`)
	a, err := ask(t, m, p.request())
	if err != nil {
		t.Fatal(err)
	}
	p.tell(`2`) // while the model was thinking
	p.record(a)
	if err := p.run(t, load(t, script.Config{}, `role("root", function* () { const m = yield receive(); yield say("x"); return m.payload })`), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"wait read=1", "continue x read=2", "end 2 read=2"}
	if diff := cmp.Diff(want, p.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One Model, one agent id, two conversations that look alike but for a payload.
func TestAKeptBrainIsNotTakenForAnotherConversation(t *testing.T) {
	m := load(t, script.Config{}, `role("root", function* (task) { yield call("echo"); return task.payload })`)
	for _, payload := range []string{`1`, `2`} {
		p := newPlay("root")
		p.tell(payload)
		a, err := ask(t, m, p.request())
		if err != nil {
			t.Fatal(err)
		}
		p.record(a)
		other := newPlay("root")
		other.items = append([]model.Item{}, p.items...)
		message := *other.items[0].Message
		message.Payload = []byte(`3`)
		other.items[0] = model.Item{Message: &message}
		a, err = ask(t, m, other.request())
		if err != nil || string(a.Value) != `3` {
			t.Errorf("got %v, %v; want the payload of its own conversation", a, err)
		}
	}
}

func TestAStepWithoutItsResultsIsAnError(t *testing.T) {
	p := newPlay("root")
	p.tell(`1`)
	m := load(t, script.Config{}, `role("root", function* () { yield call("echo") })`)
	a, err := ask(t, m, p.request())
	if err != nil {
		t.Fatal(err)
	}
	p.record(a)
	p.items = p.items[:len(p.items)-1]
	_, err = ask(t, m, p.request())
	wantCode(t, err, errcode.Internal, "has a result")
}

func TestAgentsAreServedSideBySide(t *testing.T) {
	m := load(t, script.Config{CacheSize: 3}, `role("*", function* () { let n = 0; for (let i = 0; i < 10; i++) n += (yield call("echo", {i})).echo.i; return [self.role, n] })`)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			role := fmt.Sprint("role", i)
			p := newPlay(role)
			if err := p.run(t, m, map[int][]string{0: {`1`}}); err != nil {
				t.Error(err)
			}
			if got, want := p.lines[10], fmt.Sprintf("end [%q,45] read=1", role); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	all.Wait()
}

func TestOneAgentAskedTwiceAtOnce(t *testing.T) {
	m := load(t, script.Config{}, `role("root", function* () { yield say("x") })`)
	p := newPlay("root")
	p.tell(`1`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if a, err := ask(t, m, p.request()); err != nil || a.Text != "x" {
				t.Errorf("got %v, %v", a, err)
			}
		})
	}
	all.Wait()
}

func TestGenerateEndsWithItsContext(t *testing.T) {
	m := load(t, script.Config{StepTimeout: time.Minute}, `role("root", function* () { for (;;); })`)
	p := newPlay("root")
	p.tell(`1`)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, err := range m.Generate(ctx, p.request()) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the cause of the context", err)
		}
	}
}

func TestAClosedModelAnswersNoMore(t *testing.T) {
	m := load(t, script.Config{}, `role("root", function* () { yield say("x") })`)
	p := newPlay("root")
	p.tell(`1`)
	if _, err := ask(t, m, p.request()); err != nil {
		t.Fatal(err)
	}
	m.Close()
	m.Close()
	_, err := ask(t, m, p.request())
	wantCode(t, err, errcode.LLMCallFailed, "closed")
}

// One step of a brain that has come through a number of steps before: with the
// brain kept, and with the whole conversation fed to a new one.
func BenchmarkStep(b *testing.B) {
	const source = `role("root", function* () { for (let i = 0; ; i++) yield call("echo", {i}) })`
	for _, steps := range []int{10, 1000} {
		m := load(b, script.Config{}, source)
		p := newPlay("root")
		p.tell(`1`)
		for range steps {
			a, err := ask(b, m, p.request())
			if err != nil {
				b.Fatal(err)
			}
			p.record(a)
		}
		b.Run(fmt.Sprintf("fed anew, %d steps", steps), func(b *testing.B) {
			anew := load(b, script.Config{CacheSize: -1}, source)
			for b.Loop() {
				if _, err := ask(b, anew, p.request()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("kept, %d steps and more", steps), func(b *testing.B) {
			for b.Loop() {
				a, err := ask(b, m, p.request())
				if err != nil {
					b.Fatal(err)
				}
				p.record(a)
			}
		})
	}
}
