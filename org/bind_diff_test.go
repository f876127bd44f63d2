package org_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// describeBounds returns changes of bounds on one line.
func describeBounds(list []org.BoundChange) string {
	var parts []string
	for _, c := range list {
		for sign, rules := range map[string][]bounds.Rule{"+": c.Added, "-": c.Removed} {
			for _, r := range rules {
				parts = append(parts, sign+c.Tool+r.String())
			}
		}
	}
	return strings.Join(parts, " ")
}

// The diff of a change names the bounds that it adds and removes, for the role and for all below it.
func TestDiff_NamesBounds(t *testing.T) {
	const ten, all = `{"pay": {"/amount": {"max": 10}}}`, ""
	for _, c := range []struct{ name, from, to, want string }{
		{"added", all, ten, `+pay{"/amount":{"max":10}}`},
		{"removed", ten, `{}`, `-pay{"/amount":{"max":10}}`},
		{"of another tool", ten, `{"pay": {"/amount": {"max": 10}}, "note": {"/text": {"equal": "x"}}}`, `+note{"/text":{"equal":"x"}}`},
		{"the same in other words", ten, `{"pay": {"/amount": {"max":  10}}}`, ""},
		{"that lets nothing through", ten, `{"pay": {"/amount": {"max": 10, "min": 11}}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newBoundFixture(t)
			lead := f.banker(operator, c.from)
			chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
			clerk := f.banker(identity.ByAgent(chief), "")
			_, diff, _, err := f.UpdateRole(operator, lead.ID, org.RoleSpec{Bind: bind(t, c.to)}, true)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[identity.RoleID]string{}
			for _, r := range diff.Roles {
				seen[r.ID] = describeBounds(r.Bounds)
			}
			if seen[lead.ID] != c.want || seen[clerk.ID] != c.want || c.want != "" && (len(diff.Agents) != 1 || describeBounds(diff.Agents[0].Bounds) != c.want) {
				t.Errorf("got %v and %+v, want %s", seen, diff.Agents, c.want)
			}
		})
	}
}

// A bound that is changed is both removed and added.
func TestDiff_NamesChangedBound(t *testing.T) {
	f := newBoundFixture(t)
	lead := f.banker(operator, `{"pay": {"/amount": {"max": 10}}}`)
	_, diff, _, err := f.UpdateRole(operator, lead.ID, org.RoleSpec{Bind: bind(t, `{"pay": {"/amount": {"max": 20}}}`)}, true)
	if err != nil || len(diff.Roles) != 1 || len(diff.Roles[0].Bounds) != 1 {
		t.Fatalf("%v %+v", err, diff)
	}
	if c := diff.Roles[0].Bounds[0]; len(c.Added) != 1 || len(c.Removed) != 1 || c.Added[0].String() != `{"/amount":{"max":20}}` || c.Removed[0].String() != `{"/amount":{"max":10}}` {
		t.Errorf("%+v", c)
	}
}

// Each limit names the bound that it sets on the tool, also if it allows the tool.
func TestLimitsOnAgent_NameBounds(t *testing.T) {
	f := newBoundFixture(t)
	lead := f.banker(operator, `{"pay": {"/amount": {"max": 10}}}`)
	chief := f.spawn(f.task(org.TaskSpec{}), lead.ID)
	clerk := f.banker(identity.ByAgent(chief), `{"pay": {"/to": {"equal": "a"}}}`)
	worker := f.spawn(chief, clerk.ID)
	seen := map[string]bool{}
	for _, l := range f.LimitsOnAgent(worker, handle(f.groups, "pay")) {
		if l.Bound != "" {
			seen[string(l.Kind)+" "+string(l.RoleID)+" "+l.Bound] = true
		}
	}
	for _, want := range []string{
		"use " + string(clerk.ID) + ` {"/to":{"equal":"a"}}`, "creator " + string(lead.ID) + ` {"/amount":{"max":10}}`, "parent " + string(lead.ID) + ` {"/amount":{"max":10}}`,
	} {
		if !seen[want] {
			t.Errorf("%s is missing in %v", want, seen)
		}
	}
	for _, l := range f.LimitsOnAgent(worker, handle(f.groups, "note")) {
		if l.Bound != "" {
			t.Errorf("note: %+v", l)
		}
	}
}
