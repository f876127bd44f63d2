package mcpserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/prompt"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// newPrompt returns a prompt whose second message is a template with these
// arguments.
func newPrompt(t testing.TB, name, text string, arguments ...parameter.Spec) toolgroups.Prompt {
	t.Helper()
	set, problems := parameter.CompileSet(parameter.Options{}, arguments, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	p, err := prompt.NewTemplate(name, "d", text, set, []toolgroups.PromptMessage{{Role: "assistant", Text: "You help."}, {Role: "user", Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// registerPrompts registers the groups travel and home with prompts, and the
// roles reader (travel) and other (home).
func (f *fixture) registerPrompts(t testing.TB) {
	t.Helper()
	no, most := false, parameter.Literal{Text: "9", Kind: parameter.KindNumber}
	trip := newPrompt(t, "trip", "To {{.city}}{{if .days}} for {{.days}} days{{end}}{{range .by}}, by {{.}}{{end}}: {{.end}}.",
		parameter.Spec{Name: "city", Type: "string", Description: "Where to.", Allowed: []parameter.Literal{{Text: "Ulm"}, {Text: "5"}, {Text: `/\{\{\.days\}\}/`}}},
		parameter.Spec{Name: "days", Type: "integer", Description: "How long.", Required: &no, Max: &most},
		parameter.Spec{Name: "by", Type: "array", Description: "By where.", Required: &no, Items: &parameter.Spec{Name: "i", Type: "string", Description: "d"}},
		parameter.Spec{Name: "end", Type: "string", Description: "d", Required: &no})
	f.register(t, toolgroups.Group{ID: "travel", Prompts: []toolgroups.Prompt{trip, newPrompt(t, "a b", "Hello.")}})
	f.register(t, toolgroups.Group{ID: "home", Prompts: []toolgroups.Prompt{newPrompt(t, "rest", "Rest.")}})
	f.role(t, "reader", "travel", "probe")
	f.role(t, "other", "home")
}

// promptNames returns the names that prompts/list returns, in order.
func promptNames(t testing.TB, session *sdk.ClientSession) string {
	t.Helper()
	list, err := session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Prompts {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// promptText returns the messages of a prompt, or the error.
func promptText(t testing.TB, session *sdk.ClientSession, name string, arguments map[string]string) string {
	t.Helper()
	result, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: arguments})
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, m := range result.Messages {
		texts = append(texts, string(m.Role)+": "+m.Content.(*sdk.TextContent).Text)
	}
	return strings.Join(texts, " | ")
}

func TestPrompts_ListsThoseOfRolesGroups(t *testing.T) {
	f := openFixture(t)
	f.registerPrompts(t)
	for _, version := range versions {
		for _, c := range []struct{ sender, path, want string }{
			{"ann@reader", "/mcp", "a b trip"}, {"ann@reader", "/mcp/travel", "a b trip"}, {"ann@reader", "/mcp/probe", ""},
			{"ann@other", "/mcp", "rest"}, {"ann@tester", "/mcp", ""}, {"operator", "/roles/other/mcp", "rest"},
		} {
			session := f.connect(t, c.sender, c.path, version, nil)
			if list := promptNames(t, session); list != c.want {
				t.Errorf("%s: %s at %s is offered %q, want %q", version, c.sender, c.path, list, c.want)
			}
			for name, text := range map[string]string{"a b": "Hello.", "rest": "Rest."} {
				want := "assistant: You help. | user: " + text
				if !strings.Contains(c.want, name) {
					want = strings.ReplaceAll(promptText(t, session, strings.Repeat("x", len(name)), nil), strings.Repeat("x", len(name)), name)
				}
				if said := promptText(t, session, name, nil); said != want {
					t.Errorf("%s: %s at %s gets of %q %q, want %q", version, c.sender, c.path, name, said, want)
				}
			}
		}
	}
}

// Prompts that a role loses disappear from its open sessions, and are answered
// like prompts that never existed.
func TestPrompts_RevokedWithGroup(t *testing.T) {
	for _, version := range versions {
		f := openFixture(t)
		f.registerPrompts(t)
		session := f.connect(t, "ann@reader", "/mcp", version, nil)
		nowhere := strings.ReplaceAll(promptText(t, session, "nowhere", nil), "nowhere", "a b")
		check := func(when, want, text string) {
			t.Helper()
			if list := promptNames(t, session); list != want {
				t.Errorf("%s: %s the role is offered %q, want %q", version, when, list, want)
			}
			if said := promptText(t, session, "a b", nil); said != text {
				t.Errorf("%s: %s it gets %q, want %q", version, when, said, text)
			}
		}
		const hello = "assistant: You help. | user: Hello."
		check("at first", "a b trip", hello)
		f.setGroups(t, "reader", "probe")
		check("without the group", "", nowhere)
		f.setGroups(t, "reader", "travel")
		check("with it again", "a b trip", hello)
		f.register(t, toolgroups.Group{ID: "travel", Prompts: []toolgroups.Prompt{newPrompt(t, "trip", "Go.")}})
		check("after a reload", "trip", nowhere)
		f.register(t, toolgroups.Group{ID: "travel", Prompts: []toolgroups.Prompt{newPrompt(t, "a b", "Hello.")}})
		check("after another reload", "a b", hello)
		if err := grouptest.UnregisterGroup(f.rt.GroupManager(), "tests", "travel"); err != nil {
			t.Fatal(err)
		}
		check("when the group is gone", "", nowhere)
		if _, err := grouptest.RegisterGroup(f.rt.GroupManager(), "another owner", toolgroups.Group{ID: "travel", Prompts: []toolgroups.Prompt{newPrompt(t, "a b", "Hello.")}}); err != nil {
			t.Fatal(err)
		}
		check("when another owner has a group of this name", "", nowhere)
	}
}

// A role restricted to a server sees neither the prompts nor the groups of
// other owners.
func TestPrompts_HiddenFromRoleRestrictedToServer(t *testing.T) {
	f := openFixture(t)
	f.registerPrompts(t)
	all, server := toolgroups.AllGroups(), "far"
	role, err := f.rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: operator}, org.RoleSpec{Name: "restricted", Prompt: "p", Use: &all, Server: &server})
	if err != nil {
		t.Fatal(err)
	}
	f.roles["restricted"] = role.ID
	session := f.connect(t, "ann@restricted", "/mcp", "2025-11-25", nil)
	if list := promptNames(t, session); list != "" {
		t.Errorf("it is offered %q", list)
	}
	if got, none := f.post(t, "ann@restricted", "/mcp/travel", `{"id":1}`, nil), f.post(t, "ann@restricted", "/mcp/nowhere", `{"id":1}`, nil); got.status != none.status || got.body != none.body {
		t.Errorf("the group is visible: %d %s, want %d %s", got.status, got.body, none.status, none.body)
	}
	f.role(t, "every")
	if _, _, err := f.rt.UpdateRole(operator, f.roles["every"], org.RoleSpec{Use: &all}, false); err != nil {
		t.Fatal(err)
	}
	if list := promptNames(t, f.connect(t, "ann@every", "/mcp/travel", "2025-11-25", nil)); list != "a b trip" {
		t.Errorf("a role of all groups is offered %q at a group of prompts", list)
	}
}

func TestPrompts_ChecksArguments(t *testing.T) {
	f := openFixture(t)
	f.registerPrompts(t)
	session := f.connect(t, "ann@reader", "/mcp", "", nil)
	const begin = "assistant: You help. | user: "
	for _, c := range []struct {
		arguments map[string]string
		want      string // "" means an error
	}{
		{map[string]string{"city": "Ulm"}, begin + "To Ulm: <no value>."},
		{map[string]string{"city": "Ulm", "end": ""}, begin + "To Ulm: ."},
		{map[string]string{"city": "5", "days": "2", "by": `["Bonn","<b>"]`, "end": "ok", "unknown": "x"}, begin + "To 5 for 2 days, by Bonn, by <b>: ok."},
		{map[string]string{"city": "{{.days}}", "days": "2", "end": "{{.city}}"}, begin + "To {{.days}} for 2 days: {{.city}}."}, // values are not templates
		{map[string]string{"city": "Ulm", "days": "null"}, begin + "To Ulm: <no value>."},
		{nil, ""},
		{map[string]string{"city": "Rome"}, ""},
		{map[string]string{"city": "Ulm", "days": "10"}, ""},
		{map[string]string{"city": "Ulm", "days": "two"}, ""},
		{map[string]string{"city": "Ulm", "days": `2,"city":"Rome"`}, ""},
		{map[string]string{"city": "Ulm", "days": `""`}, ""},
		{map[string]string{"city": "Ulm", "by": "[1]"}, ""},
		{map[string]string{"city": "Ulm", "by": "Bonn"}, ""},
		{map[string]string{"city": "Ulm", "end": strings.Repeat("x", parameter.MaxText)}, ""},
	} {
		said := promptText(t, session, "trip", c.arguments)
		if c.want != "" && said != c.want || c.want == "" && strings.HasPrefix(said, begin) {
			t.Errorf("%.200v: got %.200q, want %q", c.arguments, said, c.want)
		}
	}
	answer := f.post(t, "ann@reader", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a b",`+statelessMeta+`}}`, statelessHeader("prompts/get", "a b"))
	result := gjson.Get(answerDocument(answer.body), "result")
	if result.Get("resultType").Str != "complete" || result.Get(`_meta.io\.modelcontextprotocol/serverInfo.name`).Str != "rolecall" || result.Get("messages.#").Int() != 2 {
		t.Errorf("without sessions: %d %s", answer.status, answer.body)
	}
	for arguments, word := range map[string]string{`{}`: `\"city\" is required`, `{"city":"Rome"}`: "city", `{"city":"Ulm","days":"x"}`: "days"} {
		answer := f.post(t, "ann@reader", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"trip","arguments":`+arguments+`,`+statelessMeta+`}}`, statelessHeader("prompts/get", "trip"))
		if gjson.Get(answer.body, "error.code").Int() != -32602 || !strings.Contains(answer.body, word) {
			t.Errorf("%s: %d %s", arguments, answer.status, answer.body)
		}
	}
	if answer := f.post(t, "ann@reader", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"trip","arguments":{"city":5},`+statelessMeta+`}}`, statelessHeader("prompts/get", "trip")); !gjson.Get(answer.body, "error").Exists() {
		t.Errorf("a number instead of a string: %d %s", answer.status, answer.body)
	}
}

// The total length of the messages is limited, too.
func TestPrompts_LimitsTotalLength(t *testing.T) {
	f := openFixture(t)
	set, _ := parameter.CompileSet(parameter.Options{}, []parameter.Spec{{Name: "a", Type: "string", Description: "d"}}, nil)
	many := make([]toolgroups.PromptMessage, 8)
	for i := range many {
		many[i] = toolgroups.PromptMessage{Role: "user", Text: "{{.a}}"}
	}
	p, err := prompt.NewTemplate("long", "", "", set, many)
	if err != nil {
		t.Fatal(err)
	}
	f.register(t, toolgroups.Group{ID: "long", Prompts: []toolgroups.Prompt{p}})
	f.role(t, "reader", "long")
	session := f.connect(t, "ann@reader", "/mcp", "", nil)
	if said := promptText(t, session, "long", map[string]string{"a": strings.Repeat("x", 600<<10)}); !strings.Contains(said, "are longer than") {
		t.Errorf("got %.200s", said)
	}
}

func TestPrompts_DeclaresCapability(t *testing.T) {
	f := openFixture(t)
	f.registerPrompts(t)
	for sender, want := range map[string]string{"ann@reader": "{}", "ann@tester": ""} {
		for _, version := range versions[1:] {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version)
			answer := f.post(t, sender, "/mcp", body, nil)
			if got := gjson.Get(answerDocument(answer.body), "result.capabilities.prompts").Raw; got != want {
				t.Errorf("%s, %s: %q, want %q: %s", sender, version, got, want, answer.body)
			}
		}
		answer := f.post(t, sender, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+statelessMeta+`}}`, statelessHeader("server/discover", ""))
		if got := gjson.Get(answerDocument(answer.body), "result.capabilities.prompts").Raw; got != want {
			t.Errorf("%s, discover: %q, want %q: %s", sender, got, want, answer.body)
		}
	}
}

// A declared prompt that is got is on record, with the start of its arguments. One that is not got, for
// want of permission or of an argument, is not.
func TestPrompts_GotAreOnRecord(t *testing.T) {
	for _, version := range versions {
		f := openFixture(t)
		f.registerPrompts(t)
		session := f.connect(t, "ann@reader", "/mcp", version, nil)
		promptText(t, session, "trip", map[string]string{"city": "Ulm", "days": "2"})
		promptText(t, session, "trip", map[string]string{"city": "Rome"})
		promptText(t, session, "rest", nil)
		promptText(t, session, "a b", nil)
		if err := f.rt.Flush(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for e, err := range f.rt.JournalStore().FollowEvents(t.Context(), 0, journal.StoredOnly) {
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := e.Body.(journal.PromptGot); ok {
				got = append(got, fmt.Sprintf("%s %s %s %d %d", p.Caller, p.Prompt, p.ArgsStart, p.ArgsSize, len(p.ArgsHash)))
			}
		}
		reader, _ := f.rt.Org().RoleByName("reader")
		by := identity.ByCaller("ann", reader.ID).String()
		want := []string{by + ` trip {"city":"Ulm","days":"2"} 25 64`, by + " a b {} 2 64"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the record has %q, want %q", version, got, want)
		}
	}
}
