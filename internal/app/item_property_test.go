package app

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/runtime"
)

var itemFlags = proptest.NewFlags(60)

// itemPool has valid and invalid texts of items that need each other, share queues and names.
var itemPool = []config.Item{
	{Kind: "toolService", Name: "a", Text: `{"request-queue": "request:tg:a", "response-queue": "response:tg:a"}`},
	{Kind: "toolService", Name: "a", Text: `{"request-queue": "request:tg:a", "response-queue": "response:tg:a", "config-params": [{"name": "style", "required": true}]}`},
	{Kind: "toolService", Name: "a", Text: `{"request-queue": "request:tg:b", "response-queue": "response:tg:a"}`},
	{Kind: "toolService", Name: "b", Text: `{"request-queue": "request:tg:b", "response-queue": "response:tg:b"}`},
	{Kind: "toolService", Name: "b", Text: `{"request-queue": "request:tg:a", "response-queue": "response:tg:b"}`},
	{Kind: "toolService", Name: "b", Text: `{"request-queue": 5`},
	{Kind: "tool", Name: "one", Text: `{"type": "tool-service", "description": "d", "service": "a"}`},
	{Kind: "tool", Name: "one", Text: `{"type": "tool-service", "description": "d", "service": "a", "style": "pun", "group": ["fun"]}`},
	{Kind: "tool", Name: "one", Text: `{"type": "tool-service", "description": "e", "service": "b", "group": []}`},
	{Kind: "tool", Name: "two", Text: `{"type": "tool-service", "description": "d", "service": "b", "state": "later"}`},
	{Kind: "tool", Name: "two", Text: `{"type": "tool-service", "description": "d", "service": "filed"}`},
	{Kind: "tool", Name: "read_file", Text: `{"type": "tool-service", "description": "d", "service": "b"}`},
	{Kind: "toolset", Name: "set", Text: `{tools: [one, two]}`},
	{Kind: "toolset", Name: "set", Text: `{tools: [one], children: [fun]}`},
	{Kind: "toolset", Name: "set", Text: `{tools: [three]}`},
	{Kind: "prompt", Name: "p", Text: `{description: d, messages: [{content: x}]}`},
}

// filePool has what files may say meanwhile.
var filePool = [][]string{
	{"{kind: role, name: r}"},
	{"{kind: role, name: r}", "{kind: toolService, name: filed, request-queue: 'request:tg:f', response-queue: 'response:tg:f'}"},
	{"{kind: role, name: r}", "{kind: toolService, name: a, request-queue: 'request:tg:a2', response-queue: 'response:tg:a2'}"},
	{"{kind: role, name: r}", "{kind: module, name: b, type: fake}"},
	{"{kind: role, name: r, toolGroups: [nonesuch]}"},
}

// table describes everything that calls of tools and lists of groups depend on.
func (f *fixture) table() (lines []string) {
	s := f.groups.CurrentSnapshot()
	for _, g := range s.ListGroups() {
		lines = append(lines, fmt.Sprintf("group %s of %s: %q has %v, children %v", g.ID, g.Owner, g.Description, g.Tools, g.Children))
	}
	for _, h := range s.ListTools() {
		d := h.Definition
		lines = append(lines, fmt.Sprintf("tool %s in %s of %s: %q %s %q %v", d.Name, h.Group, h.Owner, d.Description, d.Input, d.State, d.States))
	}
	for name, m := range f.running {
		lines = append(lines, fmt.Sprintf("module %s of type %s: %s", name, m.Type, m.Settings))
	}
	for _, i := range f.ListItems() {
		lines = append(lines, fmt.Sprintf("item %s/%s is %s: %s %t", i.Kind, i.Name, i.Status, i.Reason, i.Kept))
	}
	slices.Sort(lines)
	return lines
}

// store1 stores an item without making it active.
func (f *fixture) store1(t *testing.T, kind, name, text string) {
	t.Helper()
	f.order++
	c := runtime.ItemChange{StoredItem: runtime.StoredItem{Kind: kind, Name: name, Text: text, Order: f.order}, Requester: byOperator}
	if err := f.Runtime.ApplyConfig(runtime.OrgConfig{KeepRoles: true, Item: &c}); err != nil {
		t.Fatal(err)
	}
}

// Items are applied, replaced and deleted, and files are loaded meanwhile, in any order. The tools
// are those of a process that reads the final files and items at once. So are they after a restart.
// A rejected change changes nothing.
func TestItem_OrderOfChangesDoesNotMatter(t *testing.T) {
	itemFlags.CheckProperty(t, proptest.CaseSize{MaxChoices: 60, MinChoices: 10, ExactCases: short.Count(4, 0)}, func(c *proptest.Choices) error {
		f := newFixture(t)
		files := filePool[0]
		f.apply(files...)
		for !c.IsEmpty() {
			before := f.table()
			next, err := f.randomChange(c, files)
			if err == nil {
				files = next
				continue
			}
			if code := errcode.CodeOf(err); code != errcode.InvalidConfig && code != errcode.ItemNotFound {
				return err
			}
			if diff := cmp.Diff(before, f.table()); diff != "" {
				return fmt.Errorf("a rejected change (%w) changed:\n%s", err, diff)
			}
		}
		if diff := cmp.Diff(f.loadedAtOnce(files), f.table()); diff != "" {
			return fmt.Errorf("the tools (-at once +step by step):\n%s", diff)
		}
		table := f.table()
		f.reopen(func(a *App) error { return a.ApplyConfig(t.Context(), f.read(files...), nil) })
		if diff := cmp.Diff(table, f.table()); diff != "" {
			return fmt.Errorf("the tools (-before +after a restart):\n%s", diff)
		}
		return nil
	})
}

// randomChange applies or deletes an item, or loads other files. It returns the files after it.
func (f *fixture) randomChange(c *proptest.Choices, files []string) ([]string, error) {
	i := itemPool[c.Pick(len(itemPool))]
	switch c.Pick(6) {
	case 0:
		next := filePool[c.Pick(len(filePool))]
		_, err := f.reconfigure(f.t.Context(), f.read(next...))
		return next, err
	case 1:
		_, err := f.DeleteItem(f.t.Context(), i.Kind, i.Name, byOperator)
		return files, err
	}
	_, err := f.ApplyItem(f.t.Context(), i.Kind, i.Name, i.Text, byOperator)
	return files, err
}

// loadedAtOnce returns the table of another process that reads files and the items of f at once.
func (f *fixture) loadedAtOnce(files []string) []string {
	f.t.Helper()
	other := newFixture(f.t)
	list, err := f.Runtime.ListItems(f.t.Context())
	for _, i := range list {
		other.store1(f.t, i.Kind, i.Name, i.Text)
	}
	if err = errors.Join(err, other.ApplyConfig(f.t.Context(), other.read(files...), nil)); err != nil {
		f.t.Fatal(err)
	}
	return other.table()
}

// The two kinds of items may change one at a time: a change of services keeps the tools of others,
// and so does a change of tools.
func TestItem_OneKindAtATime(t *testing.T) {
	f := newFixture(t)
	f.apply("{kind: role, name: r}")
	f.put("toolService", "a", itemPool[0].Text)
	f.put("tool", "one", itemPool[6].Text)
	f.put("toolService", "b", itemPool[3].Text)
	if !f.hasTool("one") {
		t.Error("a change of services only removed a tool")
	}
	f.put("tool", "two", itemPool[9].Text)
	f.drop("tool", "one")
	if f.hasTool("one") || !f.hasTool("two") {
		t.Error("a change of tools only failed")
	}
	f.drop("toolService", "b")
	f.drop("tool", "two")
	f.put("toolService", "b", itemPool[3].Text)
	f.put("tool", "two", itemPool[9].Text)
	if got := f.statuses(); !f.hasTool("two") || got != "tool/two active, toolService/a active, toolService/b active" {
		t.Errorf("deleted and applied again: %s", got)
	}
}
