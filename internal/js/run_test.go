package js_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/js"
)

func TestRun_ReturnsValue(t *testing.T) {
	tests := []struct{ name, code, input, want string }{
		{"return", "return 1 + 1", "", "2"},
		{"no return is null", "1 + 1", "", "null"},
		{"undefined is null", "return undefined", "", "null"},
		{"input", "return input.list.map(x => x * 2)", `{"list":[1,2]}`, "[2,4]"},
		{"no input is undefined", "return typeof input", "", `"undefined"`},
		{"promises are awaited", "const wait = async (x) => x; return await wait(1) + await Promise.resolve(2)", "", "3"},
		{"returned promise is awaited", "return Promise.all([1, Promise.resolve(2)])", "", "[1,2]"},
		{"dates", "return [new Date(0), Date.now() > 1e12]", "", `["1970-01-01T00:00:00.000Z",true]`},
		{"values that JSON omits", "return {a: undefined, b: () => 1, c: [() => 1], d: NaN}", "", `{"c":[null],"d":null}`},
		{"toJSON", "return {toJSON: () => 'me'}", "", `"me"`},
		{"console is silent", "console.log('x'); return 1", "", "1"},
		{"result of exactly the limit", "return 'a'.repeat(199998)", "", `"` + strings.Repeat("a", 199998) + `"`},
		{"modern JavaScript", "return Object.groupBy([1, 2, 3], (x) => x % 2 ? 'odd' : 'even')", "", `{"odd":[1,3],"even":[2]}`},
		{"replaced built-ins", "JSON.stringify = Promise.prototype.then = null; return 5", "", "5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := js.RunScript(t.Context(), tt.code, json.RawMessage(tt.input), js.Limits{})
			if err != nil || string(got) != tt.want {
				t.Errorf("got %.100s, %v; want %.100s", got, err, tt.want)
			}
		})
	}
}

func TestRun_ReportsErrors(t *testing.T) {
	tests := []struct {
		name, code string
		want       errcode.Code
		text       string
	}{
		{"throw with line", "\n\nthrow new RangeError('too far')", errcode.ToolExecutionFailed, "RangeError: too far (line 3)"},
		{"throw after an await", "await 1\nnull.x", errcode.ToolExecutionFailed, "cannot read property 'x' of null (line 2)"},
		{"syntax error with line", "let a = 1\nlet b = ;", errcode.ToolExecutionFailed, "(line 2)"},
		{"rejected promise", "return Promise.reject(new Error('no'))", errcode.ToolExecutionFailed, "Error: no"},
		{"thrown object", "throw {code: 7}", errcode.ToolExecutionFailed, `{"code":7}`},
		{"error that cannot be shown", "throw {toJSON() { throw 1 }}", errcode.ToolExecutionFailed, "cannot be shown"},
		{"promise that never settles", "await new Promise(() => {})", errcode.ToolExecutionFailed, "never settle"},
		{"function", "return () => 1", errcode.NotSerializable, "a function"},
		{"symbol", "return Symbol('x')", errcode.NotSerializable, "a symbol"},
		{"BigInt", "return {n: 1n}", errcode.NotSerializable, "BigInt"},
		{"circular object", "const a = {}; a.a = a; return a", errcode.NotSerializable, "circular"},
		{"endless recursion", "const f = () => f() + 1; f()", errcode.ToolExecutionFailed, "stack overflow"},
		{"memory bomb", "for (const a = [];;) a.push('x'.repeat(1000) + a.length)", errcode.ToolExecutionFailed, "memory"},
		{"loop", "for (;;);", errcode.ToolTimeout, "ran out of time"},
		{"endless promises", "for (;;) await null", errcode.ToolTimeout, "ran out of time"},
		{"loop after an await that catches", "await 1; try { for (;;); } catch { return 1 }", errcode.ToolTimeout, "ran out of time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := js.Limits{Time: time.Minute, Memory: 8 << 20}
			if tt.want == errcode.ToolTimeout {
				l.Time = 100 * time.Millisecond
			}
			got, err := js.RunScript(t.Context(), tt.code, nil, l)
			if errcode.CodeOf(err) != tt.want || !strings.Contains(errcode.Message(err), tt.text) {
				t.Errorf("got %s, %v; want %s with %q", got, err, tt.want, tt.text)
			}
		})
	}
}

func TestRun_LimitsResult(t *testing.T) {
	_, err := js.RunScript(t.Context(), "return 'a'.repeat(199999)", nil, js.Limits{})
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != errcode.ResultTooLarge || e.Details["maxJsonLength"] != 200_000 || e.Details["jsonLength"] != 200_001 {
		t.Errorf("got %#v", err)
	}
}

func TestRun_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := js.RunScript(ctx, "for (;;);", nil, js.Limits{Time: time.Minute})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

func TestRun_IsSafeForConcurrentUse(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := js.RunScript(t.Context(), "globalThis.n = (globalThis.n ?? 0) + 1; return n", nil, js.Limits{})
			if err != nil || string(got) != "1" {
				t.Errorf("got %s, %v; want 1", got, err)
			}
		})
	}
	all.Wait()
}

func BenchmarkRun(b *testing.B) {
	rows := make([]map[string]any, 50_000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": "row", "value": 1.5}
	}
	large, _ := json.Marshal(rows)
	for name, input := range map[string]json.RawMessage{"nothing": nil, "2MB": large} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := js.RunScript(b.Context(), "return input?.length", input, js.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
