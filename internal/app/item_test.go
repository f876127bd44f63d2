package app

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/runtime"
)

var operator = identity.ByOperator("cli")

var byOperator = runtime.Requester{By: operator}

// descriptor returns a file of the example of tool services, in TrustGraph's form.
func descriptor(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/joke-service/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// put applies an item, which must be accepted.
func (f *fixture) put(kind, name, text string) {
	f.t.Helper()
	if i, err := f.ApplyItem(f.t.Context(), kind, name, text, byOperator); err != nil || i.Status != wire.ItemActive {
		f.t.Fatalf("apply %s/%s: %+v, %v", kind, name, i, err)
	}
}

// drop deletes an item.
func (f *fixture) drop(kind, name string) {
	f.t.Helper()
	if _, err := f.DeleteItem(f.t.Context(), kind, name, byOperator); err != nil {
		f.t.Fatal(err)
	}
}

// statuses returns the items with their statuses.
func (f *fixture) statuses() string {
	var list []string
	for _, i := range f.ListItems() {
		list = append(list, i.Kind+"/"+i.Name+" "+i.Status)
	}
	return strings.Join(list, ", ")
}

// hasTool reports whether a tool is registered.
func (f *fixture) hasTool(name string) bool {
	_, ok := f.groups.CurrentSnapshot().LookupTool(name)
	return ok
}

// putJoke applies TrustGraph's descriptors of the joke service.
func (f *fixture) putJoke() {
	f.t.Helper()
	f.put("tool-service", "joke-service", descriptor(f.t, "joke-service.json"))
	f.put("tool", "tell-joke", descriptor(f.t, "tell-joke.json"))
}

// reopen closes the App of a fixture and opens it again, as the next process does.
func (f *fixture) reopen(configure func(*App) error) {
	f.t.Helper()
	o := f.options
	if err := f.Close(); err != nil {
		f.t.Fatal(err)
	}
	a, err := Open(o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.App = a
	if err := configure(f.App); err != nil {
		f.t.Fatal(err)
	}
}

// TrustGraph's descriptors are accepted as they are, with and without a configuration. They are
// active at once and after a restart, and in the record.
func TestItem_AppliesDescriptorsOfTrustGraph(t *testing.T) {
	f := newFixture(t)
	f.putJoke()
	f.reopen(func(a *App) error { return a.ActivateItems(t.Context()) })
	if !f.hasTool("tell-joke") || f.statuses() != "tool/tell-joke active, toolService/joke-service active" {
		t.Errorf("after a restart: %s", f.statuses())
	}
	f.apply(jokeBroker, "{kind: role, name: entertainer, toolGroups: [default]}")
	joke, err := f.startJoke(f.key("joke-service"))
	if err != nil {
		t.Fatal(err)
	}
	defer joke.Stop()
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"llamas"}`); !strings.HasPrefix(got, "pun about llamas for ann") {
		t.Errorf("got %q", got)
	}
	f.put("tool", "tell-joke", strings.Replace(descriptor(t, "tell-joke.json"), `"pun"`, `"one-liner"`, 1))
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"llamas"}`); !strings.HasPrefix(got, "one-liner about llamas") {
		t.Errorf("after a change: %q", got)
	}
	f.drop("tool", "tell-joke")
	if got := f.callAs("ann", "entertainer", "tell-joke", `{"topic":"llamas"}`); !strings.HasPrefix(got, "unknown_tool: ") {
		t.Errorf("after the end: %q", got)
	}
	var changes []string
	for e, err := range f.Runtime.JournalStore().Read(t.Context(), journal.Org, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := e.Body.(journal.ItemChanged); ok {
			changes = append(changes, fmt.Sprintf("%s %s/%s %s %d", c.By, c.Kind, c.Name, c.Change, len(c.Digest)))
		}
	}
	want := []string{"operator toolService/joke-service applied 64", "operator tool/tell-joke applied 64", "operator tool/tell-joke applied 64", "operator tool/tell-joke deleted 0"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// An item that is not valid is rejected with its place, and nothing changes.
func TestItem_RejectedChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeBroker, "{kind: prompt, name: filed, description: d, messages: [{content: x}]}\n---\n{kind: role, name: reader, toolGroups: [default]}")
	f.putJoke()
	tool := descriptor(t, "tell-joke.json")
	other := strings.Replace(descriptor(t, "joke-service.json"), `"joke-service"`, `"ahead"`, 1)
	before, table := f.statuses(), f.table()
	for want, i := range map[string]config.Item{
		"applied:tool/x:1:4":                            {Kind: "tool", Name: "x", Text: `{"a`},
		"an item is one document":                       {Kind: "tool", Name: "x", Text: tool + "\n---\n" + tool},
		"applied:tool/empty:1:1: an item is one":        {Kind: "tool", Name: "empty", Text: "# nothing"},
		"must be a mapping":                             {Kind: "tool", Name: "x", Text: "[1]"},
		`no toolService is named "joke-servic"`:         {Kind: "tool", Name: "x", Text: strings.Replace(tool, `"joke-service"`, `"joke-servic"`, 1)},
		`requires the value "style"`:                    {Kind: "tool-service", Name: "strict", Text: "x"},
		`is neither a field of a tool nor a value`:      {Kind: "tool", Name: "x", Text: strings.Replace(tool, `"style"`, `"tone"`, 1)},
		`is the queue of the tool service "joke-servic`: {Kind: "tool-service", Name: "ahead", Text: other},
		`"read_file" is a built-in tool`:                {Kind: "tool", Name: "read_file", Text: tool},
		`module name "root" is reserved`:                {Kind: "toolService", Name: "root", Text: strings.NewReplacer("joke-service", "root", "joke", "other").Replace(descriptor(t, "joke-service.json"))},
		"is not tool, the kind":                         {Kind: "tool", Name: "x", Text: "{kind: role, name: x}"},
		`is not "x", the name`:                          {Kind: "tool", Name: "x", Text: "{kind: tool, name: y}"},
		"labels of a tool of a server":                  {Kind: "tool", Name: "x", Text: "{kind: tool, of: fs/read, group: [default]}"},
		`prompt "filed" is declared at org.yaml`:        {Kind: "prompt", Name: "filed", Text: "{messages: [{content: y}]}"},
		`kind "role" cannot be applied`:                 {Kind: "role", Name: "x", Text: "{}"},
		`kind "source" cannot be applied`:               {Kind: "source", Name: "x", Text: "{}"},
		"the item has no name":                          {Kind: "tool", Text: tool},
		"which is invisible":                            {Kind: "tool", Name: "a\nb", Text: tool},
		"has 65537 bytes":                               {Kind: "tool", Name: "x", Text: strings.Repeat("#", config.MaxItemText+1)},
		"must not have the content of a file":           {Kind: "tool", Name: "x", Text: strings.Replace(tool, "pun", "${file:/etc/hostname}", 1)},
		"variable NO_SUCH_VARIABLE is not set":          {Kind: "tool", Name: "x", Text: strings.Replace(tool, "pun", "${NO_SUCH_VARIABLE}", 1)},
		`"no/such" is not a valid name`:                 {Kind: "tool", Name: "no/such", Text: tool},
		"unknown tool group nonesuch":                   {Kind: "toolset", Name: "x", Text: "{tools: [tell-joke], children: [nonesuch]}"},
	} {
		if i.Name == "strict" { // a tool without a value that its service requires
			f.put("tool-service", "strict", `{"request-queue": "request:tg:s", "response-queue": "response:tg:s", "config-params": [{"name": "style", "required": true}]}`)
			i = config.Item{Kind: "tool", Name: "x", Text: `{"type": "tool-service", "description": "d", "service": "strict"}`}
		}
		_, err := f.ApplyItem(t.Context(), i.Kind, i.Name, i.Text, byOperator)
		if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%s/%.20s: got %v, want %q", i.Kind, i.Name, err, want)
		}
		if i.Kind == "tool" && strings.Contains(i.Text, `"strict"`) {
			f.drop("toolService", "strict")
		}
	}
	if diff := cmp.Diff(table, f.table()); diff != "" || f.statuses() != before {
		t.Errorf("%s; the table changed:\n%s", f.statuses(), diff)
	}
	if _, err := f.DeleteItem(t.Context(), "tool", "nonesuch", byOperator); errcode.CodeOf(err) != errcode.ItemNotFound {
		t.Errorf("delete an item that is not there: %v", err)
	}
}

// An item that becomes invalid is broken with its reason, and the others stay. It is active again
// when what it needs is back.
func TestItem_BecomesBroken(t *testing.T) {
	f := newFixture(t)
	f.apply(jokeRoles + "\n---\n" + strings.Replace(jokeTool, "joke-service", "filed", 1) + "\n---\n" + strings.NewReplacer("joke-service", "filed", "tg:joke", "tg:filed").Replace(jokeService))
	f.put("tool-service", "joke-service", descriptor(t, "joke-service.json"))
	f.put("tool", "pun", descriptor(t, "tell-joke.json"))
	f.put("tool-service", "math", `{"request-queue": "request:tg:math", "response-queue": "response:tg:math"}`)
	f.put("tool", "add", `{"type": "tool-service", "description": "d", "service": "math"}`)
	f.drop("tool-service", "joke-service")
	if got := f.statuses(); got != "tool/add active, tool/pun broken, toolService/math active" || f.hasTool("pun") || !f.hasTool("add") || !f.hasTool("tell-joke") {
		t.Errorf("after the end of its service: %s", got)
	}
	for _, i := range f.ListItems() {
		if i.Name == "pun" && i.Reason != `applied:tool/pun:5:14: service: no toolService is named "joke-service" (there are filed, math)` {
			t.Errorf("the reason is %q", i.Reason)
		}
	}
	if notes := strings.Join(f.ListNotes(), "\n"); !strings.Contains(notes, "applied item tool/pun is broken: ") {
		t.Errorf("the notes are %s", notes)
	}
	f.put("tool-service", "joke-service", descriptor(t, "joke-service.json"))
	if got := f.statuses(); !f.hasTool("pun") || strings.Contains(got, "broken") {
		t.Errorf("when the service is back: %s", got)
	}
	f.put("tool-service", "joke-service", strings.Replace(descriptor(t, "joke-service.json"), "style", "tone", 1))
	if got := f.statuses(); got != "tool/add active, tool/pun broken, toolService/joke-service active, toolService/math active" || f.hasTool("pun") {
		t.Errorf("when the service has other parameters: %s", got)
	}
	f.put("tool", "pun", strings.Replace(descriptor(t, "tell-joke.json"), "style", "tone", 1))
	if !f.hasTool("pun") {
		t.Errorf("when the tool has them too: %s", f.statuses())
	}
}

// A file and an item of one name are in conflict, and the file counts. Files stay all or nothing.
func TestItem_Conflict(t *testing.T) {
	f := newFixture(t)
	f.apply("{kind: role, name: reader}")
	f.putJoke()
	f.apply(jokeService, strings.Replace(jokeTool, "tell-joke", "filed", 1), jokeRoles)
	if got := f.statuses(); got != "tool/tell-joke active, toolService/joke-service conflict" || !f.hasTool("filed") || !f.hasTool("tell-joke") {
		t.Errorf("got %s", got)
	}
	f.apply(jokeService, jokeTool, jokeRoles)
	if got := f.statuses(); got != "tool/tell-joke conflict, toolService/joke-service conflict" {
		t.Errorf("got %s", got)
	}
	if _, err := f.reconfigure(t.Context(), f.read("{kind: role, name: r, toolGroups: [nonesuch]}")); errcode.CodeOf(err) != errcode.InvalidConfig || f.hasTool("filed") {
		t.Errorf("a wrong file: %v", err)
	}
	if got := f.statuses(); got != "tool/tell-joke conflict, toolService/joke-service conflict" {
		t.Errorf("after a wrong file: %s", got)
	}
	f.apply("{kind: role, name: reader}")
	if got := f.statuses(); got != "tool/tell-joke active, toolService/joke-service active" {
		t.Errorf("when the file has them no more: %s", got)
	}
}

// A module of a file that takes the name of an applied service leaves the service out, and the
// other items and the files stay.
func TestItem_YieldsToModuleOfFile(t *testing.T) {
	f := newFixture(t)
	f.put("tool-service", "fake", `{"request-queue": "request:tg:fake", "response-queue": "response:tg:fake"}`)
	f.put("tool", "one", `{"type": "tool-service", "description": "d", "service": "fake"}`)
	f.putJoke()
	f.apply("{kind: module, name: fake, type: fake, settings: {Tool: from_file}}", "{kind: role, name: r, toolGroups: [fake]}")
	if got := f.statuses(); got != "tool/one broken, tool/tell-joke active, toolService/fake broken, toolService/joke-service active" || !f.hasTool("from_file") || !f.hasTool("tell-joke") {
		t.Errorf("got %s", got)
	}
	f.apply("{kind: module, name: kit, type: fake, settings: {Tool: tell-joke}}", "{kind: role, name: r, toolGroups: [kit]}")
	h, _ := f.groups.CurrentSnapshot().LookupTool("tell-joke")
	if got := f.statuses(); h.Owner != "module:kit" || !strings.Contains(got, "toolService/fake active") || !strings.Contains(got, "tool/one active") {
		t.Errorf("a tool of a file with the name of an applied one: %s, it is of %s", got, h.Owner)
	}
}

// What an item changes leaves roles as they are, also one that was changed since the files were
// read, and tokens stay valid.
func TestItem_LeavesRolesAndTokens(t *testing.T) {
	f := newFixture(t)
	f.apply("{kind: role, name: reader, toolGroups: [console]}\n---\n{kind: gateway, name: g, tokens: [{name: ci, role: reader, sha256: " + strings.Repeat("ab", 32) + "}]}")
	role, _ := f.Runtime.Org().RoleByName("reader")
	if _, _, err := f.Runtime.PauseRole(operator, role.ID, ""); err != nil {
		t.Fatal(err)
	}
	role, _ = f.Runtime.Org().RoleByName("reader")
	f.putJoke()
	f.drop("tool", "tell-joke")
	after, _ := f.Runtime.Org().RoleByName("reader")
	if diff := cmp.Diff(fmt.Sprint(role), fmt.Sprint(after)); diff != "" || len(f.Tokens.ListTokens()) != 1 {
		t.Errorf("%d tokens; the role changed:\n%s", len(f.Tokens.ListTokens()), diff)
	}
}

// There are at most so many items.
func TestItem_AreBounded(t *testing.T) {
	f := newFixture(t)
	b := &journal.Batch{}
	for n := range config.MaxItems {
		name := fmt.Sprintf("p%d", n)
		value, _ := json.Marshal(runtime.StoredItem{Kind: "prompt", Name: name, Order: uint64(n), Text: "{messages: [{content: x}]}"})
		b.Put = append(b.Put, journal.Record{Kind: "configItem", Key: "prompt/" + name, Value: value})
	}
	if _, err := f.store.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ApplyItem(t.Context(), "prompt", "more", "{messages: [{content: x}]}", byOperator); errcode.CodeOf(err) != errcode.LimitExceeded {
		t.Errorf("one more item: %v", err)
	}
	f.drop("prompt", "p0")
	f.put("prompt", "more", "{description: d, messages: [{content: x}]}")
}

// addFlakyBroker adds the kind of broker flaky, which is an embedded one without a URL, and fails
// with one.
func (f *fixture) addFlakyBroker() {
	nats, _ := f.brokers.findKind("nats")
	f.brokers.kinds = append(f.brokers.kinds, broker.Kind{
		Name: "flaky", Check: func(broker.Config) error { return nil },
		Connect: func(c broker.Config) (broker.Driver, error) {
			if c.URL != "" {
				return nil, errcode.New(errcode.ToolUnavailable, "the flaky broker fails")
			}
			return nats.Connect(c)
		},
	})
}

// A service that cannot start again keeps its last version in service, and is shown as broken. The
// start of a process with such a service fails for none of the others.
func TestItem_KeepsLastVersion(t *testing.T) {
	f := newFixture(t)
	f.addFlakyBroker()
	const roles = "{kind: role, name: r, toolGroups: [default]}"
	const works, fails = "{kind: broker, name: main, type: flaky}", "{kind: broker, name: main, type: flaky, url: 'x://fails'}"
	f.apply(works, roles)
	f.putJoke()
	f.put("prompt", "p", "{description: d, messages: [{content: x}]}")
	f.apply(fails, roles)
	for _, i := range f.ListItems() {
		if broken := i.Kind != "prompt"; (i.Status == wire.ItemBroken) != broken || i.Kept != broken || strings.HasSuffix(i.Reason, "module: the flaky broker fails") != broken {
			t.Errorf("got %+v", i)
		}
	}
	if !f.hasTool("tell-joke") {
		t.Error("the last version is not in service")
	}
	if _, err := f.ApplyItem(t.Context(), "tool", "more", descriptor(t, "tell-joke.json"), byOperator); errcode.CodeOf(err) != errcode.InvalidConfig || f.hasTool("more") {
		t.Errorf("apply a tool of a service that cannot start: %v", err)
	}
	f.reopen(func(a *App) error {
		f.addFlakyBroker()
		return a.ApplyConfig(t.Context(), f.read(fails, roles), nil)
	})
	if got := f.statuses(); got != "prompt/p active, tool/tell-joke broken, toolService/joke-service broken" || f.hasTool("tell-joke") {
		t.Errorf("after a start: %s", got)
	}
	f.apply(works, roles)
	if got := f.statuses(); strings.Contains(got, "broken") || !f.hasTool("tell-joke") {
		t.Errorf("when it can start: %s", got)
	}
}

// Variables are substituted when an item is read, and never stored.
// Over the network the operator cannot read variables through an item, however they are written.
func TestItem_VariablesOverTheNetwork(t *testing.T) {
	f := newFixture(t)
	f.options.Env = func(name string) (string, bool) { return "canary-7d1e", name == "ITEM_SECRET" }
	f.apply(jokeBroker, strings.Replace(jokeService, "config-params: [style]", "untypedArguments: false", 1), "{kind: role, name: clerk, toolGroups: [console]}")
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, Items: f.App})
	if err != nil {
		t.Fatal(err)
	}
	api := client.NewLocal(handler)
	document := "{type: tool-service, service: joke-service, description: DESCRIPTION}"
	for _, description := range []string{
		`"${ITEM_SECRET}"`, `"\u0024{ITEM_SECRET}"`, `"\x24{ITEM_SECRET}"`, `"$\x7bITEM_SECRET}"`, "\"$\\\n  {ITEM_SECRET}\"", `&a "\u0024{ITEM_SECRET}"`,
		`d, "\u0024{ITEM_SECRET}": x`, `d, extra: [{a: "\u0024{ITEM_SECRET}"}]`,
	} {
		text := strings.Replace(document, "DESCRIPTION", description, 1)
		if i, err := api.ApplyConfigItem(t.Context(), "tool", "x", text); errcode.CodeOf(err) != errcode.InsufficientPermissions {
			h, _ := f.groups.CurrentSnapshot().LookupTool("x")
			t.Errorf("%s: %+v, %v; models read %q", description, i, err, h.Definition.Description)
		}
	}
	if _, err := api.ApplyConfigItem(t.Context(), "tool", "x", strings.Replace(document, "DESCRIPTION", `"costs $5 {or less}"`, 1)); err != nil {
		t.Errorf("without a variable: %v", err)
	}
}

func TestItem_VariablesAreNotStored(t *testing.T) {
	f := newFixture(t)
	f.options.Env = func(name string) (string, bool) { return "canary-7d1e", name == "STYLE" }
	f.put("tool-service", "joke-service", descriptor(t, "joke-service.json"))
	f.put("tool", "tell-joke", strings.Replace(descriptor(t, "tell-joke.json"), "a given topic", "${STYLE}", 1))
	if h, _ := f.groups.CurrentSnapshot().LookupTool("tell-joke"); h.Definition.Description != "Tell a joke on canary-7d1e" {
		t.Errorf("the description is %q", h.Definition.Description)
	}
	list, err := f.Runtime.ListItems(t.Context())
	if err != nil || !strings.Contains(list[1].Text, "${STYLE}") || strings.Contains(fmt.Sprint(list), "canary") {
		t.Errorf("stored: %v, %v", list, err)
	}
	f.options.Env = nil
	f.apply("{kind: role, name: r}")
	if got := f.statuses(); got != "tool/tell-joke broken, toolService/joke-service active" {
		t.Errorf("without the variable: %s", got)
	}
}
