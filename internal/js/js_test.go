package js_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/js"
)

func Example() {
	vm, err := js.New(js.Limits{Pure: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer vm.Close()
	if err := vm.LoadScript("sum.js", "function sum(list) {\n  return list.reduce((a, b) => a + b, 0);\n}"); err != nil {
		fmt.Println(err)
	}
	result, err := vm.CallFunction(context.Background(), "sum", json.RawMessage(`[1, 2, 3]`))
	fmt.Println(string(result), err)
	_, err = vm.CallFunction(context.Background(), "sum", json.RawMessage(`7`))
	fmt.Println(err)
	// Output:
	// 6 <nil>
	// sum.js:2:3: TypeError: not a function
}

// newVM returns a VM that has loaded f.
func newVM(t *testing.T, l js.Limits, f string) *js.VM {
	t.Helper()
	vm, err := js.New(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	if err := vm.LoadScript("f.js", f); err != nil {
		t.Fatal(err)
	}
	return vm
}

// wantError checks that err is an *Error of a kind.
func wantError(t *testing.T, err error, kind js.ErrorKind) *js.Error {
	t.Helper()
	e, ok := errors.AsType[*js.Error](err)
	if !ok || e.Kind != kind {
		t.Fatalf("got error %v, want kind %s", err, kind)
	}
	return e
}

func TestVM_Call(t *testing.T) {
	tests := []struct{ name, f, arg, want string }{
		{"JSON in and out", "const f = (x) => ({got: x})\nglobalThis.f = f", `{"a":[1,"ü",null]}`, `{"got":{"a":[1,"ü",null]}}`},
		{"undefined is null", "function f() {}", `1`, `null`},
		{"empty argument is undefined", "function f(x) { return typeof x }", ``, `"undefined"`},
		{"strings keep zero bytes", "function f(x) { return x + x.length }", `"a\u0000b"`, `"a\u0000b3"`},
		{"key __proto__", "function f(x) { return [x.polluted === undefined, Object.keys(x)] }", `{"__proto__":{"polluted":1}}`, `[true,["__proto__"]]`},
		{"replaced JSON.stringify", "JSON.stringify = () => '\"mine\"'; function f() { return 1 }", ``, `1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newVM(t, js.Limits{}, tt.f).CallFunction(t.Context(), "f", json.RawMessage(tt.arg))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestVM_CallErrorsGivePlace(t *testing.T) {
	tests := []struct{ name, f, want string }{
		{"throw in a called function", "function g() {\n  throw new Error('boom')\n}\nfunction f() { g() }", "f.js:2:18: Error: boom"},
		{"throw in a callback of a built-in", "function f() {\n\n  [1].map(() => null.x)\n}", "f.js:3:21: TypeError: cannot read property 'x' of null"},
		{"thrown string has no place", "function f() { throw 'boom' }", "boom"},
		{"result is not JSON", "function f() { return f }", "TypeError: f returned a function, which JSON cannot represent"},
		{"missing function", "", "TypeError: f is not a function"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newVM(t, js.Limits{}, tt.f).CallFunction(t.Context(), "f", nil)
			wantError(t, err, js.KindThrown)
			if err.Error() != tt.want {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

func TestVM_LoadErrorGivesPlace(t *testing.T) {
	vm := newVM(t, js.Limits{Pure: true}, "function f() {}\n")
	err := vm.LoadScript("second.js", "let a = 1\nlet b = ;\n")
	e := wantError(t, err, js.KindThrown)
	if e.Source != "second.js" || e.Line != 2 || e.Column != 9 {
		t.Errorf("got %s:%d:%d, want second.js:2:9", e.Source, e.Line, e.Column)
	}
}

func TestVM_EnforcesLimits(t *testing.T) {
	tests := []struct {
		name, f string
		kind    js.ErrorKind
	}{
		{"loop", "function f() { for (;;); }", js.KindTimeout},
		{"loop that catches everything", "function f() { for (;;) try { for (;;); } catch {} finally { for (;;); } }", js.KindTimeout},
		{"backtracking regular expression", "function f() { return /(a+)+$/.test('a'.repeat(50) + 'b') }", js.KindTimeout},
		{"endless getter in the result", "function f() { return {get a() { for (;;); }} }", js.KindTimeout},
		{"growing list", "function f() { for (const a = [];;) a.push('x'.repeat(1000) + a.length) }", js.KindMemory},
		{"huge string", "function f() { return 'a'.repeat(2**29).length }", js.KindMemory},
		{"endless recursion", "function f() { return f() + 1 }", js.KindThrown},
		{"deep JSON", "function f() { return JSON.parse('['.repeat(1e6)) }", js.KindThrown},
		{"waiting for another thread", "function f() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000) }", js.KindThrown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vm := newVM(t, js.Limits{Time: 400 * time.Millisecond, Memory: 8 << 20}, tt.f)
			if tt.kind != js.KindTimeout { // must not time out first on a slow machine
				vm = newVM(t, js.Limits{Time: time.Minute, Memory: 8 << 20}, tt.f)
			}
			_, err := vm.CallFunction(t.Context(), "f", nil)
			wantError(t, err, tt.kind)
		})
	}
}

func TestVM_IsUnusableAfterTimeout(t *testing.T) {
	vm := newVM(t, js.Limits{Time: 20 * time.Millisecond}, "function f(x) { while (x); }")
	_, first := vm.CallFunction(t.Context(), "f", json.RawMessage(`true`))
	wantError(t, first, js.KindTimeout)
	if _, err := vm.CallFunction(t.Context(), "f", json.RawMessage(`false`)); err != first {
		t.Errorf("got %v from the next call, want %v", err, first)
	}
}

func TestVM_IsUsableAfterThrow(t *testing.T) {
	vm := newVM(t, js.Limits{}, "function f(x) { if (x) throw 1; return 2 }")
	if _, err := vm.CallFunction(t.Context(), "f", json.RawMessage(`true`)); err == nil {
		t.Fatal("no error")
	}
	if got, err := vm.CallFunction(t.Context(), "f", json.RawMessage(`false`)); err != nil || string(got) != "2" {
		t.Errorf("got %s, %v; want 2", got, err)
	}
}

func TestVM_CallEndsWithContext(t *testing.T) {
	t.Run("while it runs", func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		vm := newVM(t, js.Limits{Time: time.Minute}, "function f() { for (;;); }")
		time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
		_, err := vm.CallFunction(ctx, "f", nil)
		wantError(t, err, js.KindCancelled)
		if !errors.Is(err, cause) {
			t.Errorf("got %v, want it to wrap the cause", err)
		}
	})
	t.Run("before the call, after which the VM is usable", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		vm := newVM(t, js.Limits{}, "function f() { return 1 }")
		_, err := vm.CallFunction(ctx, "f", nil)
		wantError(t, err, js.KindCancelled)
		if _, err := vm.CallFunction(t.Context(), "f", nil); err != nil {
			t.Error(err)
		}
	})
}

func TestVM_CloseTwice(t *testing.T) {
	vm := newVM(t, js.Limits{}, "function f() {}")
	vm.Close()
	vm.Close()
	if _, err := vm.CallFunction(t.Context(), "f", nil); err == nil {
		t.Error("got no error from a closed VM")
	}
}

func TestVM_HasNoHostFunctions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.js")
	if err := os.WriteFile(file, []byte("export default 'secret'; globalThis.leak = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"std", "os", "require", "fetch", "process", "setTimeout", "scriptArgs", "print", "navigator", "Worker", "bjson", "WebAssembly"} {
		t.Run(name+" does not exist", func(t *testing.T) {
			vm := newVM(t, js.Limits{}, "function f(name) { return typeof (0, eval)(name + '') }")
			_, err := vm.CallFunction(t.Context(), "f", json.RawMessage(`"`+name+`"`))
			wantError(t, err, js.KindThrown) // a ReferenceError
		})
	}
	t.Run("import reads no file", func(t *testing.T) {
		_, err := js.RunScript(t.Context(), "return (await import(input)).default", json.RawMessage(fmt.Sprintf("%q", file)), js.Limits{})
		if err == nil {
			t.Error("the module was loaded")
		}
	})
}

func TestVM_PureIsDeterministic(t *testing.T) {
	tests := []struct{ name, expression, want string }{
		{"date with a time", "new Date(86400000).toISOString()", `"1970-01-02T00:00:00.000Z"`},
		{"date parts are UTC", "new Date(2020, 6, 1, 12).toISOString()", `"2020-07-01T12:00:00.000Z"`},
		{"text without zone is UTC", "new Date('2020-07-01T12:00:00').getHours()", `12`},
		{"text with zone", "new Date('2020-07-01T12:00:00+02:00').getHours()", `10`},
		{"other format without zone is UTC", "new Date('Jul 1 2020 12:00').toISOString()", `"2020-07-01T12:00:00.000Z"`},
		{"date of a date", "new Date(new Date(5)).getTime()", `5`},
		{"date is printed in UTC", "String(new Date(0))", `"Thu, 01 Jan 1970 00:00:00 GMT"`},
		{"local setters are UTC", "{ const d = new Date(0); d.setHours(3); d.toJSON() }", `"1970-01-01T03:00:00.000Z"`},
		{"no offset from UTC", "new Date(0).getTimezoneOffset()", `0`},
		{"invalid date", "[String(new Date(NaN)), new Date('x').toDateString()]", `["Invalid Date","Invalid Date"]`},
		{"subclass of Date", "class D extends Date {}; [new Date(0) instanceof Date, new D(7).getTime(), new D(7) instanceof D]", `[true,7,true]`},
		{"no weak references", "[typeof WeakRef, typeof FinalizationRegistry]", `["undefined","undefined"]`},
		{"no performance, no shared memory", "[typeof performance, typeof Atomics, typeof SharedArrayBuffer]", `["undefined","undefined","undefined"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vm := newVM(t, js.Limits{Pure: true}, "function f(x) { return (0, eval)(x) }")
			arg, _ := json.Marshal(tt.expression)
			got, err := vm.CallFunction(t.Context(), "f", arg)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
	for _, expression := range []string{"Date()", "Date.now()", "new Date()", "new (new Date(0).constructor)()", "Math.random()", "Reflect.construct(Date, [])"} {
		t.Run(expression+" throws", func(t *testing.T) {
			_, err := newVM(t, js.Limits{Pure: true}, "function f() { return "+expression+" }").CallFunction(t.Context(), "f", nil)
			wantError(t, err, js.KindThrown)
		})
	}
}
