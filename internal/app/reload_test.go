package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// fakeModule is a module with one group of its name. It logs its life cycle.
type fakeModule struct {
	name  string
	Fail  bool   // Provision fails
	Tool  string // its tool's name; "" is the module's
	Group string // the id of its group; "" is the module's name
	callLog
}

type callLog struct{ add func(string) }

func (m *fakeModule) Name() string { return m.name }

func (m *fakeModule) Provision(context.Context) error {
	m.add("provision " + m.name)
	if m.Fail {
		return errcode.New(errcode.ToolUnavailable, "cannot start")
	}
	return nil
}

func (m *fakeModule) ToolGroups() []toolgroups.Group {
	name := m.Tool
	if name == "" {
		name = m.name
	}
	t, err := tool.New(name, "", func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	if err != nil {
		panic(err)
	}
	group := m.Group
	if group == "" {
		group = m.name
	}
	return []toolgroups.Group{{ID: toolgroups.GroupID(group), Tools: []tool.Tool{t}}}
}

func (m *fakeModule) Close() error {
	m.add("close " + m.name)
	return nil
}

// fixture is an App that has the module type fake. It keeps the life cycle calls of its
// modules, and what it logs as a warning.
type fixture struct {
	*App
	t     *testing.T
	logs  buffer.SyncBuffer // warnings
	mu    sync.Mutex
	calls []string
	order uint64 // of the last item of store1
}

func newFixture(t *testing.T, more ...modules.ModuleKind) *fixture {
	t.Helper()
	f := &fixture{t: t}
	add := func(what string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls = append(f.calls, what)
	}
	kind := modules.ModuleKind{Name: "fake", New: func(c modules.Config) (modules.Module, error) {
		m := &fakeModule{name: c.Name, callLog: callLog{add}}
		return m, c.DecodeSettings(m)
	}}
	log := slog.New(slog.NewTextHandler(&f.logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	a, err := Open(Options{Data: t.TempDir(), Launcher: launcher, Kinds: append(more, kind), Warn: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.App = a
	return f
}

func (f *fixture) read(docs ...string) *config.Config {
	f.t.Helper()
	cfg, err := config.ReadFiles([]yamldoc.File{
		{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))},
		{Path: "agents.js", Data: []byte(`role("root", function* () { return 1; })`), Named: true},
		{Path: "other.js", Data: []byte(`role("root", function* () { return 2; })`), Named: true},
	}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return cfg
}

// takeCalls returns the life cycle calls since the last takeCalls.
func (f *fixture) takeCalls() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.calls, ", ")
	f.calls = nil
	return text
}

// allowedTools lists which of the tools the role reader may call now.
func (f *fixture) allowedTools(tools ...string) string {
	f.t.Helper()
	role, ok := f.Runtime.Org().RoleByName("reader")
	if !ok {
		return "no role reader"
	}
	access := f.Runtime.Gate().PreviewSubject(f.Runtime.Org().RoleView(role.ID, toolgroups.AllGroups()), "")
	var list []string
	for _, name := range tools {
		if access.AuthorizeTool(name).Allowed() {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

const (
	readerRole = "{kind: role, name: reader, toolGroups: [a, console]}"
	moduleA    = "{kind: module, name: a, type: fake}"
	moduleB    = "{kind: module, name: b, type: fake}"
)

func TestReconfigure_TouchesOnlyChangedModules(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(readerRole, moduleA, moduleB), nil); err != nil {
		t.Fatal(err)
	}
	f.takeCalls()
	steps := []struct {
		name    string
		docs    []string
		summary []string
		calls   string
		allowed string
	}{
		{"same", []string{moduleB, readerRole, moduleA}, []string{}, "", "a console_print"},
		{"settings changed", []string{readerRole, "{kind: module, name: a, type: fake, settings: {tool: a2}}", moduleB},
			[]string{"module a is reloaded"}, "provision a, close a", "a2 console_print"},
		{"module removed, role changed", []string{"{kind: role, name: reader, toolGroups: [b]}", moduleB},
			[]string{"module a is unloaded"}, "close a", "b"},
		{"module added", []string{readerRole, moduleA, moduleB}, []string{"module a is loaded"}, "provision a", "a console_print"},
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			summary, err := f.reconfigure(t.Context(), f.read(s.docs...))
			if diff := cmp.Diff(s.summary, summary); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if got := f.takeCalls(); got != s.calls {
				t.Errorf("module calls %q, want %q", got, s.calls)
			}
			if got := f.allowedTools("a", "a2", "b", "console_print"); got != s.allowed {
				t.Errorf("the reader may call %q, want %q", got, s.allowed)
			}
		})
	}
}

// A mistake anywhere in a configuration leaves roles, modules, models and the network
// policy as they were.
func TestReconfigure_InvalidConfigChangesNothing(t *testing.T) {
	wider := "{kind: network, name: net, allowHTTP: true}"
	script := "{kind: model, name: main, type: script, file: other.js}"
	for name, docs := range map[string][]string{
		"unknown group":                   {moduleB, "{kind: role, name: reader, toolGroups: [a, b, c]}"},
		"unknown server":                  {moduleB, readerRole, "{kind: role, name: s, server: c}"},
		"module of a role fails to start": {"{kind: module, name: c, type: fake, settings: {fail: true}}", "{kind: role, name: reader, toolGroups: [a, b, c]}", moduleB},
		"unknown module type":             {moduleB, "{kind: module, name: c, type: teleport}", readerRole},
		"invalid settings":                {moduleB, "{kind: module, name: c, type: fake, settings: {colour: red}}", readerRole},
		"role of another creator":         {moduleB, "{kind: role, name: reader, toolGroups: [a, b, console, command]}", "{kind: role, name: taken}"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if _, err := f.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("test")}, org.RoleSpec{Name: "taken"}); err != nil {
				t.Fatal(err)
			}
			if err := f.ApplyConfig(t.Context(), f.read(readerRole, moduleA, "{kind: model, name: main, type: script, file: agents.js}"), nil); err != nil {
				t.Fatal(err)
			}
			before, network := f.models.Load(), f.limits.requests()
			summary, err := f.reconfigure(t.Context(), f.read(append(docs, moduleA, wider, script)...))
			if err == nil || summary != nil {
				t.Errorf("summary %q, %v; want an error", summary, err)
			}
			if got := f.allowedTools("a", "b", "c", "console_print", "run_command"); got != "a console_print" {
				t.Errorf("the reader may call %q", got)
			}
			if diff := cmp.Diff(network.AllowHTTP, f.limits.requests().AllowHTTP); diff != "" || f.models.Load() != before {
				t.Errorf("the network policy or the models changed:\n%s", diff)
			}
			if list := f.loader.ListModules(); len(list) != 1 || list[0].Name != "a" {
				t.Errorf("modules are %v", list)
			}
		})
	}
}

// A module that fails to start and that no role needs does not reject the change:
// revocations take effect, and the old module stays.
func TestReconfigure_FailedModuleKeepsOldOne(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(readerRole, moduleA), nil); err != nil {
		t.Fatal(err)
	}
	f.takeCalls()
	broken := f.read("{kind: role, name: reader, toolGroups: [a]}", "{kind: module, name: a, type: fake, settings: {fail: true}}",
		"{kind: module, name: b, type: fake, settings: {fail: true}}")
	summary, err := f.reconfigure(t.Context(), broken)
	if err != nil || len(summary) != 2 || !strings.Contains(summary[0]+summary[1], "cannot start") {
		t.Errorf("summary %q, %v; want two modules that failed", summary, err)
	}
	if got := f.allowedTools("a", "b", "console_print"); got != "a" {
		t.Errorf("the reader may call %q, want the old module's tool and no other", got)
	}
	if got := f.takeCalls(); strings.Count(got, "provision") != 2 || strings.Count(got, "close") != 2 {
		t.Errorf("module calls %q", got)
	}
	if summary, err = f.reconfigure(t.Context(), broken); err != nil || len(summary) != 2 {
		t.Errorf("second attempt: %q, %v", summary, err)
	}
}

// If a replacement of a module fails to start, a role does not gain the read part of the old
// module's group. It may keep that part in place of the group.
func TestReconfigure_FailedModuleAndReadPart(t *testing.T) {
	for change, ok := range map[[2]string]bool{
		{"[b]", "[a:read]"}: false, {"[a:read]", "[a]"}: false, {"[a]", "[a:read]"}: true, {"[a:read]", "[a:read]"}: true,
	} {
		f := newFixture(t)
		role := func(groups string) string { return "{kind: role, name: reader, toolGroups: " + groups + "}" }
		if err := f.ApplyConfig(t.Context(), f.read(role(change[0]), moduleA, moduleB), nil); err != nil {
			t.Fatal(err)
		}
		_, err := f.reconfigure(t.Context(), f.read(role(change[1]), "{kind: module, name: a, type: fake, settings: {fail: true, tool: a2}}", moduleB))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "would gain groups of the old module") {
			t.Errorf("from %s to %s: %v, want accepted %t", change[0], change[1], err, ok)
		}
	}
}

// A configuration names the parts of known groups. Another part than that for reading is an error.
func TestApplyConfig_ReadParts(t *testing.T) {
	for groups, want := range map[string]string{
		"[a:read, workspace:read, default:read]": "",
		"[a:write]":                              `unknown tool group a:write (did you mean "a:read"? A group has no other part)`,
		"[a:read:read]":                          `unknown tool group a:read:read (did you mean "a:read"?`,
		"[nothing:read]":                         `unknown tool group nothing:read`,
		"[worksapce:read]":                       `unknown tool group worksapce:read (did you mean "workspace"?)`,
	} {
		f := newFixture(t)
		err := f.ApplyConfig(t.Context(), f.read("{kind: role, name: reader, toolGroups: "+groups+", grant: "+groups+"}", moduleA), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", groups, err, want)
		}
	}
}

// A module whose tool name is taken rejects the change when the groups are registered. The
// old module stays, and so does all the rest.
func TestReconfigure_ConflictingModuleKeepsOldOne(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(readerRole, moduleA, moduleB), nil); err != nil {
		t.Fatal(err)
	}
	summary, err := f.reconfigure(t.Context(), f.read("{kind: role, name: reader, toolGroups: [a]}", moduleA, "{kind: module, name: b, type: fake, settings: {tool: a}}"))
	if err == nil || summary != nil || !strings.Contains(err.Error(), `the tool name "a" belongs to group "a"`) {
		t.Errorf("summary %q, %v", summary, err)
	}
	if got := f.allowedTools("a", "b", "console_print"); got != "a console_print" {
		t.Errorf("the reader may call %q", got)
	}
	if list := f.loader.ListModules(); len(list) != 2 {
		t.Errorf("modules are %v", list)
	}
}

func TestReconfigure_ReusesUnchangedModels(t *testing.T) {
	f := newFixture(t)
	one, two := "{kind: model, name: one, type: script, file: agents.js}", "{kind: model, name: two, type: script, file: agents.js}"
	if err := f.ApplyConfig(t.Context(), f.read(one, two), nil); err != nil {
		t.Fatal(err)
	}
	before := f.models.Load()
	if _, err := f.reconfigure(t.Context(), f.read("{kind: model, name: two, type: script, file: other.js}", "{kind: role, name: r}", one)); err != nil {
		t.Fatal(err)
	}
	after := f.models.Load()
	if before.byName["one"] != after.byName["one"] {
		t.Error("the unchanged model was replaced")
	}
	if before.byName["two"] == after.byName["two"] {
		t.Error("the changed model was not replaced")
	}
	if _, err := f.reconfigure(t.Context(), f.read(one)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.model("two"); errcode.CodeOf(err) != errcode.InvalidConfig {
		t.Errorf("removed model: %v", err)
	}
}

// Files are loaded once they have not changed between two looks. The same content is
// tried once, and a repaired file is applied.
func TestConfigWatcher_WaitsForStableFiles(t *testing.T) {
	f := newFixture(t)
	file := filepath.Join(t.TempDir(), "org.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(readerRole + "\n---\n" + moduleA)
	f.options.Files = []string{file}
	cfg, err := config.LoadFiles(f.options.Files, nil)
	if err := f.ApplyConfig(t.Context(), cfg, err); err != nil {
		t.Fatal(err)
	}
	console := &buffer.SyncBuffer{}
	f.options.Console = console
	watcher := f.newConfigWatcher()
	look := func() string {
		console.Drain()
		if watcher.changeSettled() {
			watcher.reload(t.Context(), false)
		}
		return strings.TrimSpace(console.Drain())
	}
	for n := range 3 {
		if got := look(); got != "" {
			t.Errorf("look %d at the active files printed %q", n, got)
		}
	}
	write(readerRole + "\n---\n{kind: module, name: a, ty")
	if got := look(); got != "" {
		t.Errorf("half a file was loaded at once: %q", got)
	}
	write(readerRole + "\n---\n{kind: module, name: a, type: teleport}")
	if got := look(); got != "" {
		t.Errorf("a file that had just been written was loaded at once: %q", got)
	}
	if got := look(); !strings.Contains(got, "is unchanged: ") || !strings.Contains(got, "org.yaml:3:31") {
		t.Errorf("invalid file: %q", got)
	}
	write(readerRole + "\n---\n{kind: module, name: a, type: teleport}")
	if first, second := look(), look(); first+second != "" {
		t.Errorf("the same content was reported again: %q", first+second)
	}
	write("{kind: role, name: reader, toolGroups: [a]}\n---\n" + moduleA)
	if first, second := look(), look(); first != "" || second != "rolecall: the new configuration is active\nrolecall: role reader is updated and loses "+strings.ReplaceAll(f.groupTools("console"), " ", ", ") {
		t.Errorf("repaired file: %q, %q", first, second)
	}
	if got := f.allowedTools("a", "console_print"); got != "a" {
		t.Errorf("the reader may call %q", got)
	}
}

// A reader of the limits waits while roles change, and gets roles and limits of one
// configuration.
func TestLiveLimits_ChangeWithRoles(t *testing.T) {
	var l liveLimits
	cfg := &config.Config{Network: config.Network{AllowHTTP: true}}
	rejected := errors.New("rejected")
	if err := l.set(cfg, func() error { return rejected }); !errors.Is(err, rejected) || l.requests().AllowHTTP {
		t.Errorf("%v: after a rejected change HTTP is allowed: %t", err, l.requests().AllowHTTP)
	}
	allowed := make(chan bool, 1)
	err := l.set(cfg, func() error {
		go func() { allowed <- l.requests().AllowHTTP }()
		return nil
	})
	if err != nil || !<-allowed || !l.requests().AllowHTTP {
		t.Errorf("%v: the change is not active, or was read before it was", err)
	}
}

// A role that was written for the group of one owner is reported when the id has another,
// and so is what root may grant.
func TestApplyConfig_ReportsLostGroups(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(rootDoc("[a]"), readerRole, moduleA, moduleB), nil); err != nil {
		t.Fatal(err)
	}
	use := toolgroups.SetOf("a")
	if _, err := f.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("test")}, org.RoleSpec{Name: "kept", Use: &use}); err != nil {
		t.Fatal(err)
	}
	other := "{kind: module, name: other, type: fake, settings: {group: a, tool: a}}"
	for range 2 {
		if _, err := f.reconfigure(t.Context(), f.read(rootDoc("[a]"), "{kind: role, name: reader, toolGroups: [b]}", moduleB, other)); err != nil {
			t.Fatal(err)
		}
	}
	got := f.logs.Drain()
	if strings.Count(got, "lost a tool group") != 1 || !strings.Contains(got, "role=kept group=a was=module:a is=module:other") {
		t.Errorf("log %q", got)
	}
	if strings.Count(got, "root may not grant a tool group any more") != 1 || !strings.Contains(got, "organization.grant") {
		t.Errorf("log %q does not say once what root has lost", got)
	}
}

// A tool, a group or an argument that a bound or an approval rule names and that does not exist is
// reported, once. One that exists is not.
func TestApplyConfig_ReportsUnknownNames(t *testing.T) {
	f := newFixture(t)
	docs := func(tool string) []string {
		return []string{
			moduleA, moduleB, "{kind: role, name: boss, toolGroups: []}",
			"{kind: organization, name: o, approval: [{groups: [a, lost], from: {any: [{role: boss}]}}]}",
			"{kind: role, name: reader, toolGroups: [a], bind: {" + tool + ": {/x: {max: 1}}}, approval: [{tools: [" + tool + "], effect: mutating, from: {any: [{role: boss}]}}]}",
		}
	}
	for _, tool := range []string{"look", "nonesuch", "nonesuch"} { // the first configuration is not logged
		if err := f.ApplyConfig(t.Context(), f.read(docs(tool)...), nil); err != nil {
			t.Fatal(err)
		}
	}
	got := f.logs.Drain()
	for _, want := range []string{
		"role reader: bind: there is no tool nonesuch; until it exists, the rule does nothing",
		"role reader: approval: there is no tool nonesuch; until it exists, the rule does nothing",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("log %q, want once %q", got, want)
		}
	}
	if strings.Contains(got, "group") {
		t.Errorf("log %q reports a group that exists, or that was missing before", got)
	}
	if notes := f.ListNotes(); !slices.Contains(notes, "organization: approval: there is no tool group lost; until it exists, the rule does nothing") {
		t.Errorf("got the notes %q", notes)
	}
	if err := f.ApplyConfig(t.Context(), f.read(docs("look")...), nil); err != nil {
		t.Fatal(err)
	}
	if got := f.logs.Drain(); strings.Contains(got, "nonesuch") {
		t.Errorf("log %q", got)
	}
}

// The rules of the organization hold for a role that has none, and are replaced with the
// configuration.
func TestApplyConfig_OrganizationApproval(t *testing.T) {
	f := newFixture(t)
	for _, rules := range []string{"[{groups: [a], from: {any: [{operator: true}]}}]", "[]"} {
		if err := f.ApplyConfig(t.Context(), f.read(moduleA, moduleB, readerRole, "{kind: organization, name: o, approval: "+rules+"}"), nil); err != nil {
			t.Fatal(err)
		}
		role, _ := f.Runtime.Org().RoleByName("reader")
		g := f.Runtime.Gate()
		subject := g.PreviewSubject(f.Runtime.Org().RoleView(role.ID, toolgroups.AllGroups()), "")
		for _, name := range subject.ToolNames() {
			want := rules != "[]" && !strings.HasPrefix(name, "console")
			if got := len(g.ApprovalRules(t.Context(), subject, name, nil)) == 1; got != want {
				t.Errorf("approval %s, %s: %v", rules, name, got)
			}
		}
	}
}

// The group of a module that is configured and has not started is known: a role may name
// it and has its tools once the module runs. A group that no module declares is not.
func TestReconfigure_DeclaresGroupsOfFailedModules(t *testing.T) {
	f := newFixture(t)
	broken := "{kind: module, name: late, type: fake, settings: {fail: true}}"
	if _, err := f.reconfigure(t.Context(), f.read(broken)); err != nil {
		t.Fatal(err)
	}
	create := func(name string, group toolgroups.GroupID) error {
		use := toolgroups.SetOf(group)
		_, err := f.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("test")}, org.RoleSpec{Name: name, Use: &use})
		return err
	}
	if err := create("reader", "late"); err != nil {
		t.Fatal(err)
	}
	if err := create("other", "later"); errcode.CodeOf(err) != errcode.GroupNotFound {
		t.Errorf("an unknown group: %v", err)
	}
	if got := f.allowedTools("late"); got != "" {
		t.Errorf("before the module runs the role may call %q", got)
	}
	if _, err := f.reconfigure(t.Context(), f.read("{kind: module, name: late, type: fake}")); err != nil {
		t.Fatal(err)
	}
	if got := f.allowedTools("late"); got != "late" {
		t.Errorf("the role may call %q", got)
	}
	if _, err := f.reconfigure(t.Context(), f.read()); err != nil {
		t.Fatal(err)
	}
	if err := create("third", "late"); errcode.CodeOf(err) != errcode.GroupNotFound {
		t.Errorf("a group that is declared no more: %v", err)
	}
}
