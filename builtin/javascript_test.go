package builtin

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

func scriptFixture(t testing.TB) fixture {
	requireSandbox(t)
	return commandFixture(t, t.TempDir(), CommandConfig{})
}

func TestRunJavaScript_ReturnsBareValue(t *testing.T) {
	for _, c := range []struct {
		name string
		args obj
		want string
	}{
		{"number", obj{"code": "return 1 + 1"}, "2"},
		{"string", obj{"code": "return 'a'"}, `"a"`},
		{"example of the description", obj{"code": "return input.reduce((a, b) => a + b, 0) / input.length", "input": []int{3, 4, 8}}, "5"},
		{"null input", obj{"code": "return input === null", "input": nil}, "true"},
		{"no return value", obj{"code": "1"}, "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scriptFixture(t).call(t, "run_javascript", c.args); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRunJavaScript_FailureIsAResult(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       errcode.Code
	}{
		{"thrown error", "throw new Error('no')", errcode.ToolExecutionFailed},
		{"function as value", "return () => 1", errcode.NotSerializable},
		{"too large value", "return 'a'.repeat(300000)", errcode.ResultTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scriptFixture(t).callCode(t, "run_javascript", obj{"code": c.code}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
