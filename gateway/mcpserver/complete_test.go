package mcpserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/toolgroups"
)

// values returns the completions of an argument, or the error.
func values(t testing.TB, session *sdk.ClientSession, ref sdk.CompleteReference, argument, start string) string {
	t.Helper()
	ref.Type = "ref/prompt"
	if ref.URI != "" {
		ref.Type = "ref/resource"
	}
	result, err := session.Complete(t.Context(), &sdk.CompleteParams{Ref: &ref, Argument: sdk.CompleteParamsArgument{Name: argument, Value: start}})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(result.Completion.Values, result.Completion.Total, result.Completion.HasMore)
}

// An argument of a declared prompt is completed with its allowed values.
func TestComplete_DeclaredPrompt(t *testing.T) {
	f := openFixture(t)
	many := parameter.Spec{Name: "number", Type: "integer", Description: "d"}
	for i := range 120 {
		many.Allowed = append(many.Allowed, parameter.Literal{Text: fmt.Sprint(100 + i), Kind: parameter.KindNumber})
	}
	trip := newPrompt(t, "trip", "To {{.city}}.",
		parameter.Spec{Name: "city", Type: "string", Description: "d", Allowed: []parameter.Literal{{Text: "Ulm"}, {Text: "Unna"}, {Text: "Bonn"}}},
		parameter.Spec{Name: "code", Type: "string", Description: "d", Allowed: []parameter.Literal{{Text: "U"}, {Text: "/[A-Z]/"}}},
		parameter.Spec{Name: "fast", Type: "boolean", Description: "d"}, parameter.Spec{Name: "free", Type: "string", Description: "d"}, many)
	f.register(t, toolgroups.Group{ID: "travel", Prompts: []toolgroups.Prompt{trip}})
	f.role(t, "reader", "travel")
	for _, version := range versions {
		session := f.connect(t, "ann@reader", "/mcp", version, nil)
		for _, c := range []struct{ argument, start, want string }{
			{"city", "", "[Ulm Unna Bonn] 3 false"}, {"city", "u", "[Ulm Unna] 2 false"}, {"city", "x", "[] 0 false"}, {"code", "", "[] 0 false"},
			{"fast", "t", "[true] 1 false"}, {"free", "", "[] 0 false"}, {"absent", "", "[] 0 false"},
		} {
			if got := values(t, session, sdk.CompleteReference{Name: "trip"}, c.argument, c.start); got != c.want {
				t.Errorf("%s: %s of %q: %s, want %s", version, c.argument, c.start, got, c.want)
			}
		}
		if got := values(t, session, sdk.CompleteReference{Name: "trip"}, "number", ""); !strings.HasPrefix(got, "[100 101 ") || !strings.HasSuffix(got, " 199] 120 true") {
			t.Errorf("%s: %s", version, got)
		}
		if session.InitializeResult().Capabilities.Completions == nil {
			t.Errorf("%s: the capability is not declared", version)
		}
		foreign := f.connect(t, "ann@tester", "/mcp", version, nil)
		if got, none := values(t, foreign, sdk.CompleteReference{Name: "trip"}, "city", "u"), values(t, foreign, sdk.CompleteReference{Name: "trap"}, "city", "u"); got != strings.ReplaceAll(none, "trap", "trip") || !strings.Contains(got, "Unknown prompt or template") {
			t.Errorf("%s: another role gets %s, and of an absent one %s", version, got, none)
		}
	}
}

// A server completes the arguments of its accepted prompts and templates, by a call of the tool
// that lists them.
func TestComplete_Upstream(t *testing.T) {
	f := openFixture(t)
	complete := func(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
		list := []string{r.Params.Ref.Type + r.Params.Ref.Name + r.Params.Ref.URI, r.Params.Argument.Value + "x\u202e"}
		for i := range 200 {
			list = append(list, fmt.Sprint(i))
		}
		return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: list, Total: 7}}, nil
	}
	able := upstreamWith("able", &sdk.ServerOptions{CompletionHandler: complete})
	f.connectUpstream(t, map[string]*sdk.Server{"able": able, "plain": upstream("plain")})
	f.role(t, "first", "able", "plain")
	session := f.connect(t, "ann@first", "/mcp", "", nil)
	for ref, want := range map[sdk.CompleteReference]string{
		{Name: "able__greet"}:           "[ref/promptgreet yx 0 1 ",
		{URI: "mcp://able/memo:{id}"}:   "[ref/resourcememo:{id} yx 0 1 ",
		{Name: "plain__greet"}:          "[] 0 false",
		{Name: "able__absent"}:          "Unknown prompt or template: able__absent",
		{URI: "mcp://able/other:{id}"}:  "Unknown prompt or template: mcp://able/other:{id}",
		{URI: "mcp://absent/memo:{id}"}: "Unknown prompt or template: mcp://absent/memo:{id}",
		{URI: "workspace:///{+path}"}:   "Unknown prompt or template",
		{Name: "greet"}:                 "Unknown prompt or template: greet",
	} {
		got := values(t, session, ref, "a", "y")
		if !strings.Contains(got, want) || strings.HasPrefix(want, "[ref") && !strings.HasSuffix(got, " 97] 100 false") {
			t.Errorf("%+v: %s, want %s", ref, got, want)
		}
	}
	if err := f.rt.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.calls(t), "\n"); !strings.Contains(got, `able__list_prompts allowed {"complete":{"prompt":"greet","argument":"a","value":"y"}}`) || !strings.Contains(got, "completion/complete denied") {
		t.Errorf("the record has %s", got)
	}
}
