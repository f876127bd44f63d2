package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Each Oversight covers changes of itself, and the operations that it names. None covers nothing.
func TestOversight_Covers(t *testing.T) {
	var none *approval.Oversight
	o := &approval.Oversight{Operations: []approval.Operation{approval.RoleGain}, From: approval.Approvers{Any: []approval.Quorum{quorum("a", 1), quorum("b", 1), quorum("a", 2)}}}
	for _, op := range append(approval.Operations(), approval.ChangeOversight) {
		if none.Covers(op) || o.Covers(op) != (op == approval.RoleGain || op == approval.ChangeOversight) {
			t.Errorf("%s: %v, %v", op, none.Covers(op), o.Covers(op))
		}
	}
	if !slices.Equal(o.RoleNames(), []string{"a", "b"}) || none.RoleNames() != nil {
		t.Errorf("%v, %v", o.RoleNames(), none.RoleNames())
	}
	if !o.Equal(o) || none.Equal(o) || o.Equal(none) || !none.Equal(nil) {
		t.Error("not equal as they should be")
	}
	if !o.Rules().Satisfied(people("b"), 0) || o.Rules().Satisfied(people("operator"), 0) || o.Rules().AllowsSelf() {
		t.Error("the votes are not those of its approvers")
	}
}

func TestOversight_Check(t *testing.T) {
	from := approval.Approvers{Any: []approval.Quorum{quorum("a", 1)}}
	for want, o := range map[string]*approval.Oversight{
		"names no operations": {From: from}, "unknown operation": {Operations: []approval.Operation{approval.ChangeOversight}, From: from},
		"named twice": {Operations: []approval.Operation{approval.Override, approval.Override}, From: from}, "neither or both": {Operations: approval.Operations()},
		"deadline is": {Operations: approval.Operations(), From: from, Deadline: -time.Second},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	var none *approval.Oversight
	if none.Check() != nil || (&approval.Oversight{Operations: approval.Operations(), From: from}).Check() != nil {
		t.Error("a valid one is rejected")
	}
}

// The operator who asks never counts among those who may approve.
func TestOversight_Approvable(t *testing.T) {
	var none *approval.Oversight
	for _, c := range []struct {
		from      approval.Approvers
		people    int
		operators int
		want      string
	}{
		{approval.Approvers{All: []approval.Quorum{{Operator: true}}}, 0, 1, "operators needed besides the one who asks: 1, there are 0"},
		{approval.Approvers{All: []approval.Quorum{{Operator: true}}}, 0, 2, ""},
		{approval.Approvers{All: []approval.Quorum{quorum("a", 2)}}, 1, 5, "people needed in the role a: 2, tokens and issuers name 1"},
		{approval.Approvers{All: []approval.Quorum{quorum("a", 0)}}, 1, 1, ""},
		{approval.Approvers{All: []approval.Quorum{quorum("a", 1), {Operator: true}}}, 1, 1, "operators needed besides the one who asks: 1, there are 0"},
		{approval.Approvers{Any: []approval.Quorum{quorum("a", 1), {Operator: true}}}, 1, 1, ""},
		{approval.Approvers{Any: []approval.Quorum{quorum("a", 1), {Operator: true}}}, 0, 1, "operators needed besides the one who asks: 1, there are 0"},
	} {
		o := &approval.Oversight{From: c.from}
		err := o.CheckApprovable(func(string) int { return c.people }, c.operators)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
	if none.CheckApprovable(nil, 0) != nil {
		t.Error("none needs approvers")
	}
}
