package builtin

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

func scriptKit(t testing.TB) kit {
	walled(t)
	return commandKit(t, t.TempDir(), Commands{})
}

func TestRunJavaScriptAnswersTheBareValue(t *testing.T) {
	for _, c := range []struct {
		name string
		args obj
		want string
	}{
		{"a number", obj{"code": "return 1 + 1"}, "2"},
		{"a string", obj{"code": "return 'a'"}, `"a"`},
		{"the example of its description", obj{"code": "return input.reduce((a, b) => a + b, 0) / input.length", "input": []int{3, 4, 8}}, "5"},
		{"null as input", obj{"code": "return input === null", "input": nil}, "true"},
		{"nothing returned", obj{"code": "1"}, "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scriptKit(t).ask(t, "run_javascript", c.args); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRunJavaScriptFailsAsAResult(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       errcode.Code
	}{
		{"a throw", "throw new Error('no')", errcode.ToolExecutionFailed},
		{"a function as value", "return () => 1", errcode.NotSerializable},
		{"a value that is too long", "return 'a'.repeat(300000)", errcode.ResultTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scriptKit(t).code(t, "run_javascript", obj{"code": c.code}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
