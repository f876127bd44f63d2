package runtime_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// The record of a denied call has the hash, the size and the start of its arguments, without
// secrets, whatever the caller has sent.
func TestInvoke_RecordsArgumentsOfDeniedCalls(t *testing.T) {
	const secret, token, secure = "sk-canary-0123456789", "token-0123456789", "secure-0123456789"
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t)}, configure: func(c *runtime.Config) { c.Redact = redact.New(secret).RedactJSON }}.open(t)
	ann := fx.createCaller(t, "probe")
	ctx := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"id": token}, Secure: json.RawMessage(`{"a":"` + secure + `"}`)})
	long := strings.Repeat("ü€𝒳", 1<<17)
	for _, c := range []struct{ name, tool, args, want string }{
		{"object", "read_file", `{"path":"a"}`, `{"path":"a"}`},
		{"no arguments", "read_file", "", `{}`},
		{"unknown tool", "no_such", `{"path":"a"}`, `{"path":"a"}`},
		{"not JSON", "echo", "{oops\x00\x1b", "{oops\x00\x1b"},
		{"not UTF-8", "echo", "{\"a\":\"\xff\xfe\"}", "{\"a\":\"\uFFFD\"}"},
		{"ambiguous keys", "echo", `{"a":1,"A":2}`, `{"a":1,"A":2}`},
		{"long", "read_file", `{"a":"` + long + `"}`, (`{"a":"` + long)[:512]},
		{"long, cut within a character", "read_file", `{"path":"` + long + `"}`, (`{"path":"` + long)[:509]},
		{"secret", "read_file", `{"path":"` + secret + `","b":"\u0073k-canary-0123456789"}`, `{"path":"***","b":"***"}`},
		{"secret at the cut", "read_file", `{"a":"` + strings.Repeat("x", 500) + secret + `"}`, `{"a":"` + strings.Repeat("x", 500) + `***"}`},
		{"credentials", "read_file", `{"a":"` + token + `","b":"` + secure + `"}`, `{"a":"***","b":"***"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := fx.InvokeTool(ctx, ann, c.tool, json.RawMessage(c.args))
			if err != nil || a.Allowed() {
				t.Fatalf("got %v, %v, want a denial", a, err)
			}
			if c.args == "" {
				c.args = `{}`
			}
			all := bodiesOf[journal.ToolCall](t, fx)
			got, sum := all[len(all)-1], sha256.Sum256([]byte(c.args))
			if got.ArgsStart != c.want || len(got.ArgsStart) > 512 || !utf8.ValidString(got.ArgsStart) {
				t.Errorf("got %q, want %q", got.ArgsStart, c.want)
			}
			if got.ArgsHash != hex.EncodeToString(sum[:]) || got.ArgsSize != len(c.args) || got.Args != nil {
				t.Errorf("got hash %s, size %d and %d bytes of arguments", got.ArgsHash, got.ArgsSize, len(got.Args))
			}
		})
	}
	for _, e := range fx.events(t) {
		if doc := mustJSON(e); len(doc) > 8<<10 || bytes.Contains(doc, []byte("0123456789")) {
			t.Errorf("got the event %.9000s", doc)
		}
	}
}

// Allowed calls have their arguments on record already.
func TestInvoke_RecordsNoHashOfAllowedCalls(t *testing.T) {
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t)}}.open(t)
	fx.invoke(t, fx.createCaller(t, "probe"), "echo", obj{"a": 1})
	for _, c := range bodiesOf[journal.ToolCall](t, fx) {
		if c.ArgsHash != "" || c.ArgsSize != 0 || c.ArgsStart != "" || string(c.Args) != `{"a":1}` {
			t.Errorf("got %+v", c)
		}
	}
}
