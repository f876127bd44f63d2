package org_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// wantDiff checks what a role gained and lost since an epoch: "+tool -tool".
func (f *fixture) wantDiff(role identity.RoleID, epoch uint64, want string) {
	f.t.Helper()
	d, err := f.DiffTools(role, epoch)
	var got []string
	for _, name := range d.Gains {
		got = append(got, "+"+name)
	}
	for _, name := range d.Loses {
		got = append(got, "-"+name)
	}
	if text := strings.Join(got, " "); text != want || err != nil || d.From != epoch || d.Epoch != f.CurrentEpoch() {
		f.t.Errorf("since epoch %d: got %q, %v, want %q", epoch, text, err, want)
	}
}

// Every change that adds or removes a tool of a role is found again, also in another
// process. It may be a change of the role, of its creator, of what root may grant, or of
// the registry.
func TestDiffTools_FollowsEveryChange(t *testing.T) {
	f := newFixture(t)
	f.store.put(f.AdvanceEpoch())
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("docs", "workspace")})
	before := f.CurrentEpoch()
	made := f.role(identity.ByAgent(f.spawn(root, boss.ID)), org.RoleSpec{Name: "made", Use: of("docs", "workspace")})
	created := f.CurrentEpoch()
	var epochs []uint64
	mark := func() { f.store.put(f.EpochRecords()); epochs = append(epochs, f.CurrentEpoch()) }
	mark()
	f.update(boss.ID, org.RoleSpec{Grant: of("docs")})
	mark()
	f.register("mcp:docs", "docs", "search", "fetch")
	mark()
	f.update(boss.ID, org.RoleSpec{Grant: of("docs", "workspace")})
	mark()
	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	mark()
	check := func() {
		t.Helper()
		f.wantDiff(made.ID, epochs[0], "-search")
		f.wantDiff(made.ID, epochs[1], "+read_file +write_file -search")
		f.wantDiff(made.ID, epochs[2], "+read_file +write_file -fetch -search")
		f.wantDiff(made.ID, epochs[3], "-fetch -search")
		f.wantDiff(made.ID, epochs[4], "")
		f.wantDiff(org.RootRole, epochs[0], "")
		if d, err := f.DiffTools(made.ID, before); err != nil || !d.Created || len(d.Gains) != 2 || len(d.Loses) != 0 {
			t.Errorf("before it was created: %+v, %v", d, err)
		}
		f.wantDiff(made.ID, created, "-search")
	}
	check()
	f.reopen()
	check()
	f.store.put(f.AdvanceEpoch())
	check()
	none := toolgroups.SetOf()
	mine := f.role(identity.ByAgent(root), org.RoleSpec{Name: "mine", Use: of("workspace")})
	epoch := f.CurrentEpoch()
	f.configure(org.RoleConfig{Default: toolgroups.AllGroups(), Root: none})
	f.store.put(f.EpochRecords())
	f.wantDiff(mine.ID, epoch, "-read_file -write_file")
}

// An epoch that is unknown is an error: a later one, one from before the record, and one
// whose changes are dropped. For one of a process that was starting, the last one before it
// counts.
func TestDiffTools_RejectsUnknownEpochs(t *testing.T) {
	f := newFixture(t)
	r := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	first := f.CurrentEpoch()
	rejects := func(epoch uint64, text string) {
		t.Helper()
		_, err := f.DiffTools(r.ID, epoch)
		wantCode(t, err, errcode.InvalidArguments, text)
	}
	rejects(first+1, "not reached yet")
	rejects(first-1, "too far back; changes of tools are recorded since epoch")
	f.reopen()
	f.register("mcp:docs", "docs", "search", "fetch") // a process that starts
	starting := f.CurrentEpoch()
	f.store.put(f.AdvanceEpoch())
	f.wantDiff(r.ID, first, "+fetch")
	f.update(r.ID, org.RoleSpec{Use: of("docs", "artifact")})
	if d, err := f.DiffTools(r.ID, starting); err != nil || d.From != first || len(d.Gains) != 2 {
		t.Errorf("got %+v, %v, want the difference since epoch %d", d, err, first)
	}
	kept := f.CurrentEpoch()
	for range 50 {
		f.update(r.ID, org.RoleSpec{Use: of("workspace")})
		f.update(r.ID, org.RoleSpec{Use: of("docs")})
	}
	f.wantDiff(r.ID, kept, "-put_artifact")
	f.update(r.ID, org.RoleSpec{Use: of("workspace")})
	rejects(kept, "too far back; changes of the tools of role \"r\" are recorded since epoch")
	f.wantDiff(r.ID, kept+1, "")
	_, err := f.DiffTools("nowhere", kept)
	wantCode(t, err, errcode.RoleNotFound)
	f.store.set("tools", string(r.ID), "damaged")
	f.reopen()
	rejects(kept+1, "no changes of the tools of role \"r\" are recorded yet")
	f.store.put(f.AdvanceEpoch())
	rejects(kept+1, "too far back")
}

// The changes of a role with very many tools are not kept, and of a deleted role nothing is.
func TestDiffTools_Bounds(t *testing.T) {
	f := newFixture(t)
	r := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	epoch := f.CurrentEpoch()
	var many []string
	for i := range 2001 {
		many = append(many, fmt.Sprintf("tool%d", i))
	}
	f.register("mcp:docs", "docs", many...)
	f.store.put(f.EpochRecords())
	_, err := f.DiffTools(r.ID, epoch)
	wantCode(t, err, errcode.InvalidArguments, "more than 2000 tools")
	f.register("mcp:docs", "docs", "search")
	f.store.put(f.EpochRecords())
	_, err = f.DiffTools(r.ID, epoch)
	wantCode(t, err, errcode.InvalidArguments, "too far back")
	if _, changes, err := f.DeleteRole(operator, r.ID, false); err != nil {
		t.Fatal(err)
	} else {
		f.store.put(changes)
	}
	for key := range f.store.records {
		if strings.HasPrefix(key, "tools ") && strings.Contains(key, string(r.ID)) {
			t.Errorf("the store has %q", key)
		}
	}
}

// A role that was deleted and made active again is not taken for a new one.
func TestDiffTools_RevivedRole(t *testing.T) {
	f := newFixture(t)
	config := org.RoleConfig{Roles: []org.RoleSpec{{Name: "r", Use: of("docs")}}, Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups()}
	f.configure(config)
	f.store.put(f.EpochRecords())
	r, _ := f.RoleByName("r")
	epoch := f.CurrentEpoch()
	f.configure(org.RoleConfig{Default: toolgroups.AllGroups(), Root: toolgroups.AllGroups()})
	f.store.put(f.EpochRecords())
	config.Keep, config.Revive = true, true
	f.configure(config)
	f.store.put(f.EpochRecords())
	_, err := f.DiffTools(r.ID, epoch)
	wantCode(t, err, errcode.InvalidArguments, "too far back")
}
