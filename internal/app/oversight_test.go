package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
)

const securityDoc, oversightDoc = "kind: role\nname: dba\ntoolGroups: []",
	"kind: oversight\nname: four-eyes\noperations: [apply]\nfrom: {any: [{role: dba}]}"

// heldRequest requires that an operation is held, and returns the id of its request.
func heldRequest(t *testing.T, err error) string {
	t.Helper()
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != errcode.ApprovalRequired {
		t.Fatalf("%v, want %s", err, errcode.ApprovalRequired)
	}
	return e.Details["approval"].(string)
}

// grantAs approves a request as a person in the role dba.
func (f *fixture) grantAs(user identity.UserName, id string) {
	f.t.Helper()
	role, _ := f.Runtime.Org().ConfiguredRole("dba")
	out, err := f.Runtime.DecideApprovals(f.t.Context(), identity.ByCaller(user, role.ID), runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{{ID: id, Approve: true}})
	if err != nil || out[0].Err != nil {
		f.t.Fatalf("%+v, %v", out, err)
	}
}

// An item waits for another person, with its text. It is applied once, and so is its deletion.
func TestOversight_Items(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(securityDoc, tokenDoc("dba"), oversightDoc), nil); err != nil {
		t.Fatal(err)
	}
	apply := func(text string) error {
		_, err := f.ApplyItem(t.Context(), "prompt", "hello", text, byOperator)
		return err
	}
	const first, second = "{messages: [{content: one}]}", "{messages: [{content: two}]}"
	id := heldRequest(t, apply(first))
	if f.statuses() != "" {
		t.Fatal("an item is active before it is approved")
	}
	found, args, err := f.Runtime.FindApprovalRequest(t.Context(), operator, id)
	if err != nil || found.Starter != "cli" || !strings.Contains(string(args.Asked), "content: one") {
		t.Errorf("%s, %v", args.Asked, err)
	}
	f.grantAs("ci", id)
	other := heldRequest(t, apply(second))
	if err := apply(first); err != nil || f.statuses() != "prompt/hello active" {
		t.Fatalf("%v, %s", err, f.statuses())
	}
	if again := heldRequest(t, apply(second)); again == other {
		t.Error("a request about the item as it was is still there")
	}
	_, err = f.DeleteItem(t.Context(), "prompt", "hello", byOperator)
	f.grantAs("ci", heldRequest(t, err))
	if _, err := f.DeleteItem(t.Context(), "prompt", "hello", byOperator); err != nil || f.statuses() != "" {
		t.Errorf("%v, %s", err, f.statuses())
	}
}

// A reload that drops the rule is rejected until its approvers agree. An item does not change it.
func TestOversight_ReloadDropsRule(t *testing.T) {
	f := newFixture(t)
	with, without := f.read(securityDoc, tokenDoc("dba"), oversightDoc), f.read(securityDoc, tokenDoc("dba"), "kind: role\nname: fresh\ntoolGroups: []")
	if err := f.ApplyConfig(t.Context(), with, nil); err != nil {
		t.Fatal(err)
	}
	_, err := f.reconfigure(t.Context(), without)
	id := heldRequest(t, err)
	if _, made := f.Runtime.Org().RoleByName("fresh"); made || f.Runtime.ActiveOversight() == nil {
		t.Error("a part of the rejected configuration is active")
	}
	if _, err := f.reconfigure(t.Context(), with); err != nil {
		t.Errorf("the active rule: %v", err)
	}
	f.grantAs("ci", id)
	if _, err := f.reconfigure(t.Context(), without); err != nil || f.Runtime.ActiveOversight() != nil {
		t.Errorf("%v, %+v", err, f.Runtime.ActiveOversight())
	}
}

// A rule without a possible approver is an error of the configuration.
func TestOversight_NoPossibleApprover(t *testing.T) {
	f := newFixture(t)
	err := f.ApplyConfig(t.Context(), f.read(securityDoc, oversightDoc), nil)
	if err == nil || !strings.Contains(err.Error(), "no possible approver") || f.Runtime.ActiveOversight() != nil {
		t.Errorf("%v", err)
	}
}
