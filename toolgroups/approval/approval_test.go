package approval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/toolgroups/approval"
)

func Example() {
	rules := approval.Rules{{
		Tools: []string{"transfer"},
		From:  approval.Approvers{All: []approval.Quorum{{Role: "finance"}, {Role: "security"}}},
	}}
	votes := []approval.Vote{{Role: "finance"}}
	fmt.Println(rules.Satisfied(votes, 0))
	fmt.Println(rules.Satisfied(append(votes, approval.Vote{Role: "security"}), 0))
	// Output:
	// false
	// true
}

func quorum(role string, count int) approval.Quorum { return approval.Quorum{Role: role, Count: count} }

// people returns votes in the roles that a text names; "operator" is an operator.
func people(text string) (list []approval.Vote) {
	for _, role := range strings.Fields(text) {
		if role == "operator" {
			list = append(list, approval.Vote{Operator: true})
		} else {
			list = append(list, approval.Vote{Role: role})
		}
	}
	return list
}

func TestRules_Satisfied(t *testing.T) {
	all := approval.Rule{From: approval.Approvers{All: []approval.Quorum{quorum("a", 0), quorum("b", 2)}}}
	any := approval.Rule{From: approval.Approvers{Any: []approval.Quorum{quorum("a", 2), {Operator: true}}}}
	late := approval.Rule{From: approval.Approvers{All: []approval.Quorum{quorum("a", 1), quorum("b", 1)}}, Escalate: &approval.Escalation{After: time.Minute, To: quorum("c", 0)}}
	tests := []struct {
		name   string
		rules  approval.Rules
		votes  string
		waited time.Duration
		want   bool
	}{
		{"no rules", nil, "a b operator", 0, false},
		{"no approvers", approval.Rules{{}}, "a b operator", 0, false},
		{"no votes", approval.Rules{all}, "", 0, false},
		{"all", approval.Rules{all}, "b a b", 0, true},
		{"one too few", approval.Rules{all}, "a b a", 0, false},
		{"any by count", approval.Rules{any}, "a a", 0, true},
		{"any by operator", approval.Rules{any}, "operator", 0, true},
		{"none of any", approval.Rules{any}, "a b", 0, false},
		{"both rules", approval.Rules{all, any}, "a a b b", 0, true},
		{"one of both rules", approval.Rules{all, any}, "a b b", 0, false},
		{"escalated", approval.Rules{late}, "c", time.Minute, true},
		{"not escalated yet", approval.Rules{late}, "c", time.Minute - 1, false},
		{"escalated, by the others", approval.Rules{late}, "a b", time.Hour, true},
		{"a role named operator", approval.Rules{any}, "Operator", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.rules.Satisfied(people(tt.votes), tt.waited); got != tt.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// A person may vote only for a quorum that is active.
func TestRules_Admits(t *testing.T) {
	rules := approval.Rules{{From: approval.Approvers{Any: []approval.Quorum{quorum("a", 0)}}, Escalate: &approval.Escalation{After: time.Minute, To: approval.Quorum{Operator: true}}}}
	for _, tt := range []struct {
		vote   string
		waited time.Duration
		want   bool
	}{{"a", 0, true}, {"b", 0, false}, {"operator", 0, false}, {"operator", time.Minute, true}} {
		if got := rules.Admits(people(tt.vote)[0], tt.waited); got != tt.want {
			t.Errorf("%s after %s: %v", tt.vote, tt.waited, got)
		}
	}
	if rules.Admits(approval.Vote{}, 0) || (approval.Rules{{From: approval.Approvers{Any: []approval.Quorum{{}}}}}).Admits(approval.Vote{}, 0) {
		t.Error("the zero Vote counts")
	}
}

func TestRules_DeadlineAndSelf(t *testing.T) {
	rules := approval.Rules{{}, {Deadline: 2 * time.Hour, Self: true}}
	if rules.Deadline() != approval.DefaultDeadline || rules[1:].Deadline() != 2*time.Hour || rules.AllowsSelf() || !rules[1:].AllowsSelf() || (approval.Rules{}).AllowsSelf() {
		t.Errorf("%s, %s, %v, %v", rules.Deadline(), rules[1:].Deadline(), rules.AllowsSelf(), rules[1:].AllowsSelf())
	}
	if added := rules[:1].Add(rules); len(added) != 2 || added.Digest() != rules.Digest() || rules.Digest() == rules[:1].Digest() {
		t.Errorf("%+v", added)
	}
}

func TestRule_Check(t *testing.T) {
	valid := func() approval.Rule {
		return approval.Rule{Tools: []string{"t"}, From: approval.Approvers{All: []approval.Quorum{quorum("a", 1)}}, Escalate: &approval.Escalation{After: time.Minute, To: approval.Quorum{Operator: true}}}
	}
	if r := valid(); r.Check() != nil || strings.Join(r.RoleNames(), " ") != "a" {
		t.Errorf("%v, %v", r.Check(), r.RoleNames())
	}
	tests := []struct {
		name  string
		spoil func(*approval.Rule)
		want  string
	}{
		{"nothing selected", func(r *approval.Rule) { r.Tools = nil }, "selects no calls"},
		{"many tools", func(r *approval.Rule) { r.Tools = make([]string, 1001) }, "more than 1000"},
		{"effect", func(r *approval.Rule) { r.Effect = "readonly" }, "unknown effect"},
		{"nobody", func(r *approval.Rule) { r.From = approval.Approvers{} }, "neither or both"},
		{"all and any", func(r *approval.Rule) { r.From.Any = r.From.All }, "neither or both"},
		{"many quorums", func(r *approval.Rule) { r.From.All = make([]approval.Quorum, 21) }, "more than 20"},
		{"deadline", func(r *approval.Rule) { r.Deadline = approval.MaxDeadline + 1 }, "deadline is"},
		{"escalation after the deadline", func(r *approval.Rule) { r.Escalate.After = time.Hour }, "escalate.after"},
		{"a role twice", func(r *approval.Rule) { r.From.All = append(r.From.All, quorum("a", 2)) }, "\"a\" twice"},
		{"operators twice", func(r *approval.Rule) { r.From.All = []approval.Quorum{{Operator: true}, {Operator: true}} }, "operators twice"},
		{"count", func(r *approval.Rule) { r.From.All[0].Count = -1 }, "count is -1"},
		{"no role", func(r *approval.Rule) { r.Escalate.To = approval.Quorum{} }, "needs a role"},
		{"role and operator", func(r *approval.Rule) { r.From.All[0].Operator = true }, "needs a role"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := valid()
			tt.spoil(&r)
			if err := r.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Documents with the same value have the same hash. Any other difference shows.
func TestDigestJSON(t *testing.T) {
	same := []string{`{"a":"é<","b":[1,{"c":null}]}`, "{ \"b\" : [1, {\"c\":null}],\n\"a\":\"\\u00e9\\u003c\"}\n"}
	if approval.DigestJSON(json.RawMessage(same[0])) != approval.DigestJSON(json.RawMessage(same[1])) {
		t.Error("different hashes of the same value")
	}
	seen := map[string]string{}
	for _, doc := range []string{`{}`, `[]`, `1`, `1.0`, `"1"`, `{"a":1}`, `{"a":"1"}`, `{"A":1}`, `{"a":1} {}`, `{"a":1`, ``, `null`, `9007199254740993`, `9007199254740992`, same[0]} {
		sum := approval.DigestJSON(json.RawMessage(doc))
		if other, ok := seen[sum]; ok {
			t.Errorf("%s and %s have the same hash", doc, other)
		}
		seen[sum] = doc
	}
}
