package runtime_test

import (
	"math"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// An agent of a role with a budget uses at most that. Nothing is reserved for it, and a smaller
// part that its parent gives it holds.
func TestBudget_OfRole(t *testing.T) {
	b := newBudgetTask(t, budgetModel, org.ModelAllowance{Requests: 20, Tokens: 100_000})
	limits := org.AgentLimits{Budget: org.ModelAllowance{Requests: 4, Tokens: 30_000}}
	capped, err := b.CreateRole(t.Context(), newCall(identity.ByAgent(b.root)), org.RoleSpec{Name: "capped", Use: groupSet(), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	general := b.role
	b.role = capped.ID
	first := b.mustSpawn(t, b.root, org.ModelAllowance{})
	second := b.mustSpawn(t, b.root, org.ModelAllowance{Requests: 2})
	third := b.mustSpawn(t, b.root, org.ModelAllowance{Requests: 19}) // at most 4 of them are reserved
	b.role = general
	_, err = b.spawn(t, b.root, org.ModelAllowance{Requests: 14})
	wantLeft(t, err, "requests", 20-1-2-4)
	_, err = b.spawn(t, first, org.ModelAllowance{Tokens: 30_001}) // also those below it
	wantLeft(t, err, "tokens", 30_000)

	for agent, most := range map[identity.AgentID]int{first: 4, second: 2, third: 4} {
		for range most {
			if _, ok := b.ask(t, agent, `{"use":1}`).(journal.ModelAnswered); !ok {
				t.Errorf("%s has less than %d requests", agent, most)
			}
		}
		if failed, ok := b.ask(t, agent, `{"use":1}`).(journal.TurnFailed); !ok || failed.Code != errcode.BudgetExceeded {
			t.Errorf("%s has more than %d requests: %+v", agent, most, failed)
		}
	}
}

// The budget of a role bounds the tasks that begin in it. The smaller one holds, and a retry raises
// it.
func TestBudget_OfRoleOfTask(t *testing.T) {
	fx := openFixture(t, "", budgetModel)
	limits := org.AgentLimits{Budget: org.ModelAllowance{Calls: 4, Tokens: 30_000}}
	if _, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "capped", Use: groupSet(), Limits: limits}); err != nil {
		t.Fatal(err)
	}
	id := fx.start(t, org.TaskSpec{Text: "go", Role: "capped", Open: true, Budget: org.ModelAllowance{Calls: 5, Tokens: 20_000, Cost: 7}})
	task, err := fx.TaskRecord(t.Context(), id)
	if want := (org.ModelAllowance{Calls: 4, Tokens: 20_000, Cost: 7}); err != nil || task.Budget != want {
		t.Errorf("the budget is %+v (%v), want %+v", task.Budget, err, want)
	}
}

// A budget that is no amount is rejected. A change of other limits keeps the budget.
func TestBudget_OfRoleIsAnAmount(t *testing.T) {
	fx := openFixture(t, "", budgetModel)
	for _, bad := range []org.ModelAllowance{{Tokens: -1}, {Calls: -1}, {Cost: math.MaxInt64}, {Requests: org.MaxAllowance + 1}} {
		_, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "capped", Use: groupSet(), Limits: org.AgentLimits{Budget: bad}})
		wantCode(t, "a role with a bad budget", err, errcode.InvalidRole)
	}
	most := org.ModelAllowance{Calls: 4}
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "capped", Use: groupSet(), Limits: org.AgentLimits{Budget: most}})
	if err != nil {
		t.Fatal(err)
	}
	role, _, err = fx.UpdateRole(operator, role.ID, org.RoleSpec{Limits: org.AgentLimits{Rounds: 9}}, false)
	if want := (org.AgentLimits{Rounds: 9, Budget: most}); err != nil || role.Limits != want {
		t.Errorf("%+v, %v; want %+v", role.Limits, err, want)
	}
}
