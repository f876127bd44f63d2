package script_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// FuzzSource checks that New rejects a source with its name and the code invalid_config, or
// that the model's calls have objects as arguments and are the same when asked again.
func FuzzSource(f *testing.F) {
	for op := range statements {
		f.Add(randomSource([]int{op}))
	}
	for _, seed := range []string{
		``, `role`, `role("root", function* () {})`, `role("*", function* () { for (;;); })`, `throw {}`, `role("root", () => 1)`, "\x00", "\xff\xfe", `import "fs"`, `await 1`,
		`role("root", function* () { yield call("a", [1]) })`, `role("root", function* () { yield call("a", {toJSON() { return 7 }}) })`, `JSON.stringify = () => "}{"; role("root", function* () { yield call("a") })`,
		`role("root", function* () { yield* this })`, `Object.prototype.op = "calls"; role("root", function* () { return {} })`, `role("root", function* () { throw { get message() { throw 1 } } })`,
		`globalThis.rolecall = {}; role("root", function* () {})`, `delete globalThis.rolecall; role("root", function* () {})`, `Array.prototype.map = 1; role("root", function* () { return [1].concat({}) })`,
	} {
		f.Add(seed)
	}
	limits := script.Config{StepTimeout: 100 * time.Millisecond, Memory: 8 << 20, CacheSize: -1}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := limits.New("agents.js", []byte(text))
		if err != nil {
			wantInvalidConfig(t, err)
			return
		}
		defer m.Close()
		if len(m.Roles()) == 0 {
			t.Fatal("got a model without roles")
		}
		first, err := firstStep(t, m)
		second, again := firstStep(t, m)
		if isDeterministic(err) && isDeterministic(again) {
			if diff := cmp.Diff(first, second); diff != "" || errorText(err) != errorText(again) {
				t.Errorf("the second answer differs, %v and %v:\n%s", err, again, diff)
			}
		}
	})
}

// wantInvalidConfig checks for the code invalid_config and the name of the source.
func wantInvalidConfig(t *testing.T, err error) {
	t.Helper()
	if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.HasPrefix(errcode.Message(err), "agents.js:") {
		t.Errorf("got %q (%s)", errcode.Message(err), errcode.CodeOf(err))
	}
}

// firstStep returns the first answer of the first role.
func firstStep(t *testing.T, m *script.Model) (answer *model.Answer, err error) {
	t.Helper()
	r := model.Request{
		Self:  model.AgentInfo{ID: "a1", Role: m.Roles()[0]},
		Items: []model.Item{{Message: &model.Message{ID: "m1", From: "user", Payload: json.RawMessage(`{"text":"go"}`)}}},
	}
	answer, err = generate(t.Context(), m, r)
	if err != nil {
		if errcode.CodeOf(err) != errcode.LLMCallFailed {
			t.Errorf("got %v (%s)", err, errcode.CodeOf(err))
		}
		return nil, err
	}
	for _, c := range answer.Calls {
		if !json.Valid(c.Args) || c.Args[0] != '{' {
			t.Errorf("got call of %q with %q", c.Name, c.Args)
		}
	}
	if answer.Finish.EndsTurn() && !json.Valid(answer.Value) {
		t.Errorf("got value %q", answer.Value)
	}
	return answer, nil
}

func generate(ctx context.Context, m *script.Model, r model.Request) (answer *model.Answer, err error) {
	for delta, fault := range m.Generate(ctx, r) {
		answer, err = delta.Answer, fault
	}
	return answer, err
}

// isDeterministic reports whether an error, if any, depends on the source only.
func isDeterministic(err error) bool {
	return err == nil || !strings.Contains(err.Error(), "out of time") && !strings.Contains(err.Error(), "out of memory")
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzResult checks that a script reads the result of a call as encoding/json does. What is
// not JSON is a string, and an empty result is null.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, `"text"`, ``, `null`, `{`, `[1,2.5,-0,1e21]`, `{"__proto__":{"error":1}}`, `{"a":1,"a":2}`, `"\ud800"`, `"\u2028\u0000"`, "\"\xff\"", "plain", `{"error":"x"}`,
		`{"constructor":{"prototype":{"x":1}}}`, strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "\ufeff{}", `9007199254740993`, `{"":0}`, `{"2":1,"1":2}`,
	} {
		f.Add([]byte(seed))
	}
	m, err := script.Config{Memory: 32 << 20, CacheSize: -1}.New("agents.js", []byte(`role("root", function* () { return yield call("look") })`))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { m.Close() })
	f.Fuzz(func(t *testing.T, content []byte) {
		answer, err := generate(t.Context(), m, model.Request{Self: model.AgentInfo{ID: "a1", Role: "root"}, Items: []model.Item{
			{Message: &model.Message{ID: "m1", From: "user", Payload: json.RawMessage(`1`)}},
			{Answer: &model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: []model.Call{{ID: "c1", Name: "look", Args: json.RawMessage(`{}`)}}}},
			{Result: &model.CallResult{Call: "c1", Tool: "look", Content: content}},
		}})
		var want, got any
		if json.Unmarshal(asJSON(content), &want) != nil { // a number that float64 cannot represent
			return
		}
		if err != nil {
			if errcode.CodeOf(err) != errcode.LLMCallFailed {
				t.Errorf("%q: got %v", content, err)
			}
			return
		}
		if err := json.Unmarshal(answer.Value, &got); err != nil {
			t.Fatalf("%q became %q: %v", content, answer.Value, err)
		}
		if !reflect.DeepEqual(got, want) { // cmp.Diff is exponential in the depth
			t.Errorf("%q became %q", content, answer.Value)
		}
	})
}

// asJSON is the oracle.
func asJSON(content []byte) []byte {
	switch {
	case len(content) == 0:
		return []byte("null")
	case json.Valid(content):
		return content
	}
	text, _ := json.Marshal(string(content))
	return text
}
