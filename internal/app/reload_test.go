package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// lamp is a module with one group of its name. What is done to lamps is noted.
type lamp struct {
	name string
	Fail bool   // Provision fails
	Tool string // its tool's name; "" is the module's
	notes
}

type notes struct{ add func(string) }

func (l *lamp) Name() string { return l.name }

func (l *lamp) Provision(context.Context) error {
	l.add("provision " + l.name)
	if l.Fail {
		return errcode.New(errcode.ToolUnavailable, "the bulb is broken")
	}
	return nil
}

func (l *lamp) Groups() []toolgroups.Group {
	name := l.Tool
	if name == "" {
		name = l.name
	}
	t, err := tool.New(name, "", func(context.Context, struct{}) (string, error) { return "lit", nil }, nil)
	if err != nil {
		panic(err)
	}
	return []toolgroups.Group{{ID: toolgroups.GroupID(l.name), Tools: []tool.Tool{t}}}
}

func (l *lamp) Close() error {
	l.add("close " + l.name)
	return nil
}

// workshop is a house with lamps, and what was done to them since last asked.
type workshop struct {
	*App
	t     *testing.T
	said  output // on stderr
	mu    sync.Mutex
	noted []string
}

func openWorkshop(t *testing.T, more ...modules.Kind) *workshop {
	t.Helper()
	w := &workshop{t: t}
	add := func(what string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.noted = append(w.noted, what)
	}
	kind := modules.Kind{Name: "lamp", New: func(c modules.Config) (modules.Module, error) {
		l := &lamp{name: c.Name, notes: notes{add}}
		return l, c.Decode(l)
	}}
	log := slog.New(slog.NewTextHandler(&w.said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	h, err := Open(Options{Data: t.TempDir(), Launcher: launcher, Kinds: append(more, kind), Warn: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	w.App = h
	return w
}

func (w *workshop) read(docs ...string) *config.Config {
	w.t.Helper()
	cfg, err := config.Read([]config.File{
		{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))},
		{Path: "brain.js", Data: []byte(`role("root", function* () { return 1; })`), Included: true},
		{Path: "other.js", Data: []byte(`role("root", function* () { return 2; })`), Included: true},
	}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

// did gives what was done to lamps, and forgets it.
func (w *workshop) did() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.noted, ", ")
	w.noted = nil
	return text
}

// may lists which of the tools the role reader may call.
func (w *workshop) may(tools ...string) string {
	w.t.Helper()
	role, ok := w.Runtime.Org().RoleNamed("reader")
	if !ok {
		return "there is no reader"
	}
	seat := w.Runtime.Gate().Preview(w.Runtime.Org().RoleView(role.ID, toolgroups.All()), "")
	var list []string
	for _, name := range tools {
		if seat.Authorize(name).Allowed() {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

const (
	reader = "{kind: role, name: reader, toolGroups: [a, console]}"
	lampA  = "{kind: module, name: a, type: lamp}"
	lampB  = "{kind: module, name: b, type: lamp}"
)

func TestOnlyWhatChangedIsTouched(t *testing.T) {
	w := openWorkshop(t)
	if err := w.Configure(t.Context(), w.read(reader, lampA, lampB), nil); err != nil {
		t.Fatal(err)
	}
	w.did()
	steps := []struct {
		why  string
		docs []string
		told []string
		did  string
		may  string
	}{
		{"the same", []string{lampB, reader, lampA}, []string{}, "", "a console_print"},
		{"other settings", []string{reader, "{kind: module, name: a, type: lamp, settings: {tool: a2}}", lampB},
			[]string{"module a is reloaded"}, "provision a, close a", "a2 console_print"},
		{"one less, and another role", []string{"{kind: role, name: reader, toolGroups: [b]}", lampB},
			[]string{"module a is unloaded"}, "close a", "b"},
		{"one more", []string{reader, lampA, lampB}, []string{"module a is loaded"}, "provision a", "a console_print"},
	}
	for _, s := range steps {
		t.Run(s.why, func(t *testing.T) {
			told, err := w.reconfigure(t.Context(), w.read(s.docs...))
			if diff := cmp.Diff(s.told, told); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if got := w.did(); got != s.did {
				t.Errorf("modules saw %q, want %q", got, s.did)
			}
			if got := w.may("a", "a2", "b", "console_print"); got != s.may {
				t.Errorf("the reader may call %q, want %q", got, s.may)
			}
		})
	}
}

// A fault takes nothing in force away and adds nothing: whichever part of a
// configuration is wrong, roles, modules, models and what requests may reach are
// those of before.
func TestAConfigurationThatIsWrongIsNotInForceInPart(t *testing.T) {
	wider := "{kind: network, name: net, allowHTTP: true}"
	brain := "{kind: model, name: brain, type: script, file: other.js}"
	for why, docs := range map[string][]string{
		"a group nobody has":             {lampB, "{kind: role, name: reader, toolGroups: [a, b, c]}"},
		"a server nobody is":             {lampB, reader, "{kind: role, name: s, server: c}"},
		"a module that a role needs":     {"{kind: module, name: c, type: lamp, settings: {fail: true}}", "{kind: role, name: reader, toolGroups: [a, b, c]}", lampB},
		"a type of module there is not":  {lampB, "{kind: module, name: c, type: teleport}", reader},
		"settings that are no settings":  {lampB, "{kind: module, name: c, type: lamp, settings: {colour: red}}", reader},
		"a role that is somebody else's": {lampB, "{kind: role, name: reader, toolGroups: [a, b, console, command]}", "{kind: role, name: taken}"},
	} {
		t.Run(why, func(t *testing.T) {
			w := openWorkshop(t)
			if _, err := w.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("test")}, org.RoleSpec{Name: "taken"}); err != nil {
				t.Fatal(err)
			}
			if err := w.Configure(t.Context(), w.read(reader, lampA, "{kind: model, name: brain, type: script, file: brain.js}"), nil); err != nil {
				t.Fatal(err)
			}
			before, network := w.models.Load(), w.bounds.requests()
			told, err := w.reconfigure(t.Context(), w.read(append(docs, lampA, wider, brain)...))
			if err == nil || told != nil {
				t.Errorf("told %q, %v; want a refusal", told, err)
			}
			if got := w.may("a", "b", "c", "console_print", "run_command"); got != "a console_print" {
				t.Errorf("the reader may call %q", got)
			}
			if diff := cmp.Diff(network.AllowHTTP, w.bounds.requests().AllowHTTP); diff != "" || w.models.Load() != before {
				t.Errorf("the network or the models are others:\n%s", diff)
			}
			if list := w.loader.Modules(); len(list) != 1 || list[0].Name != "a" {
				t.Errorf("modules are %v", list)
			}
		})
	}
}

// What does not come up and nobody needs hinders nobody: revocations come in
// force, the old module stays.
func TestAModuleThatDoesNotComeUpLeavesTheOldOne(t *testing.T) {
	w := openWorkshop(t)
	if err := w.Configure(t.Context(), w.read(reader, lampA), nil); err != nil {
		t.Fatal(err)
	}
	w.did()
	broken := w.read("{kind: role, name: reader, toolGroups: [a]}", "{kind: module, name: a, type: lamp, settings: {fail: true}}",
		"{kind: module, name: b, type: lamp, settings: {fail: true}}")
	told, err := w.reconfigure(t.Context(), broken)
	if err != nil || len(told) != 2 || !strings.Contains(told[0]+told[1], "the bulb is broken") {
		t.Errorf("told %q, %v; want that two did not come up", told, err)
	}
	if got := w.may("a", "b", "console_print"); got != "a" {
		t.Errorf("the reader may call %q, want the old module's tool and no other", got)
	}
	if got := w.did(); strings.Count(got, "provision") != 2 || strings.Count(got, "close") != 2 {
		t.Errorf("modules saw %q", got)
	}
	if told, err = w.reconfigure(t.Context(), broken); err != nil || len(told) != 2 {
		t.Errorf("tried again: %q, %v", told, err)
	}
}

// A module whose tool another has is refused when it is swapped in: the old one
// stays, the rest is in force.
func TestAModuleThatCannotBeSwappedLeavesTheOldOne(t *testing.T) {
	w := openWorkshop(t)
	if err := w.Configure(t.Context(), w.read(reader, lampA, lampB), nil); err != nil {
		t.Fatal(err)
	}
	told, err := w.reconfigure(t.Context(), w.read("{kind: role, name: reader, toolGroups: [a]}", lampA, "{kind: module, name: b, type: lamp, settings: {tool: a}}"))
	if err == nil || told == nil || !strings.Contains(err.Error(), `the tool name "a" belongs to group "a"`) {
		t.Errorf("told %q, %v", told, err)
	}
	if got := w.may("a", "b", "console_print"); got != "a" {
		t.Errorf("the reader may call %q", got)
	}
	if list := w.loader.Modules(); len(list) != 2 {
		t.Errorf("modules are %v", list)
	}
}

func TestModelsThatDidNotChangeStayTheSame(t *testing.T) {
	w := openWorkshop(t)
	one, two := "{kind: model, name: one, type: script, file: brain.js}", "{kind: model, name: two, type: script, file: brain.js}"
	if err := w.Configure(t.Context(), w.read(one, two), nil); err != nil {
		t.Fatal(err)
	}
	before := w.models.Load()
	if _, err := w.reconfigure(t.Context(), w.read("{kind: model, name: two, type: script, file: other.js}", "{kind: role, name: r}", one)); err != nil {
		t.Fatal(err)
	}
	after := w.models.Load()
	if before.byName["one"] != after.byName["one"] {
		t.Error("the model that did not change is another")
	}
	if before.byName["two"] == after.byName["two"] {
		t.Error("the model that changed is the same")
	}
	if _, err := w.reconfigure(t.Context(), w.read(one)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.model("two"); errcode.Of(err) != errcode.InvalidConfig {
		t.Errorf("the model that is gone: %v", err)
	}
}

// Only what settles is loaded: who is still writing is waited for, the same
// content is tried once, and what is repaired comes in force.
func TestAFollowerLooksTwice(t *testing.T) {
	w := openWorkshop(t)
	file := filepath.Join(t.TempDir(), "org.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(reader + "\n---\n" + lampA)
	w.options.Files = []string{file}
	cfg, err := config.Load(w.options.Files, nil)
	if err := w.Configure(t.Context(), cfg, err); err != nil {
		t.Fatal(err)
	}
	said := &output{}
	w.options.Console = said
	f := w.newConfigWatcher()
	look := func() string {
		said.take()
		if f.stable() {
			f.load(t.Context(), false)
		}
		return strings.TrimSpace(said.take())
	}
	for n := range 3 {
		if got := look(); got != "" {
			t.Errorf("look %d at what is in force says %q", n, got)
		}
	}
	write(reader + "\n---\n{kind: module, name: a, ty")
	if got := look(); got != "" {
		t.Errorf("half a file is loaded at once: %q", got)
	}
	write(reader + "\n---\n{kind: module, name: a, type: teleport}")
	if got := look(); got != "" {
		t.Errorf("a file that was written just now is loaded at once: %q", got)
	}
	if got := look(); !strings.Contains(got, "stays as it was: ") || !strings.Contains(got, "org.yaml:3:31") {
		t.Errorf("a file that is wrong: %q", got)
	}
	write(reader + "\n---\n{kind: module, name: a, type: teleport}")
	if first, second := look(), look(); first+second != "" {
		t.Errorf("the same content is told again: %q", first+second)
	}
	write("{kind: role, name: reader, toolGroups: [a]}\n---\n" + lampA)
	if first, second := look(), look(); first != "" || second != "rolecall: the new configuration is in force" {
		t.Errorf("a file that is right again: %q, %q", first, second)
	}
	if got := w.may("a", "console_print"); got != "a" {
		t.Errorf("the reader may call %q", got)
	}
}

// Who asks what requests may reach while roles change waits, and gets both of
// the new configuration or both of the old.
func TestRolesAndReachChangeTogether(t *testing.T) {
	var b liveLimits
	cfg := &config.Config{Network: config.Network{AllowHTTP: true}}
	refused := errors.New("refused")
	if err := b.set(cfg, func() error { return refused }); !errors.Is(err, refused) || b.requests().AllowHTTP {
		t.Errorf("%v: a refused change lets http through: %t", err, b.requests().AllowHTTP)
	}
	asked := make(chan bool, 1)
	err := b.set(cfg, func() error {
		go func() { asked <- b.requests().AllowHTTP }()
		return nil
	})
	if err != nil || !<-asked || !b.requests().AllowHTTP {
		t.Errorf("%v: the change is not in force, or was asked for before it was", err)
	}
}
