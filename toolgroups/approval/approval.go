// Package approval says which tool calls wait for people, and whose votes let them go on.
//
// A role has [Rule]s. Each selects calls by tool, tool group or effect class, and says which
// people must approve them:
//
//	rule := approval.Rule{
//		Tools: []string{"transfer"},
//		From:  approval.Approvers{All: []approval.Quorum{{Role: "finance"}, {Role: "security"}}},
//	}
//
// With Unless a rule leaves out calls whose arguments are within bounds ([Rules.ForArguments]). A
// call that several rules select waits until all of them are satisfied. The package decides about
// arguments and votes alone. Package toolgroups finds the rules of a call, and package gate lets
// the call wait. Package runtime stores approvals and checks the identity of approvers.
package approval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// The limits of rules, and their defaults.
const (
	DefaultDeadline = time.Hour
	MaxDeadline     = 30 * 24 * time.Hour
	MaxRules        = 100 // of one role
	maxNames        = 1000
	maxQuorums      = 20
	maxCount        = 20
)

// Rule lets the calls that it selects wait for people. A call is selected if it fits each of
// Tools, Groups and Effect that is set, unless Unless allows its arguments. A Rule that sets none
// of them selects all calls.
type Rule struct {
	Tools    []string      `json:"tools,omitempty"`  // names of tools
	Groups   []string      `json:"groups,omitempty"` // ids of tool groups, which stand for their children too
	Effect   string        `json:"effect,omitempty"` // the effect class of the tool: mutating, idempotent or readOnly
	Unless   bounds.Rule   `json:"unless,omitzero"`  // of arguments that need no approval; the zero Rule is none
	From     Approvers     `json:"from"`
	Deadline time.Duration `json:"deadline,omitempty"` // from the request on; 0 is DefaultDeadline
	Escalate *Escalation   `json:"escalate,omitempty"` // nil for none
	Self     bool          `json:"self,omitempty"`     // the person who started the task may approve, too
}

// Approvers are the people whose votes are needed: the people of each quorum in All, or of one
// quorum in Any. Exactly one of the lists is set. The zero Approvers are never satisfied.
type Approvers struct {
	All []Quorum `json:"all,omitempty"`
	Any []Quorum `json:"any,omitempty"`
}

// Quorum is a number of people in a role, or of operators.
type Quorum struct {
	Role     string `json:"role,omitempty"`     // name of a declared role
	Operator bool   `json:"operator,omitempty"` // operators, in place of a role
	Count    int    `json:"count,omitempty"`    // different people; 0 is 1
}

// Escalation lets the people of a quorum approve alone when a request has waited for long.
type Escalation struct {
	After time.Duration `json:"after"`
	To    Quorum        `json:"to"`
}

// Vote is the approval of one person. A person has at most one vote for a call, so the votes of
// two quorums come from different people.
type Vote struct {
	Role     string // name of the role in which the person voted; "" for an operator
	Operator bool
}

// Check returns an error that says what is wrong with a rule, nil if it is valid.
func (r *Rule) Check() error {
	switch {
	case len(r.Tools) == 0 && len(r.Groups) == 0 && r.Effect == "":
		return errors.New("it selects no calls: name tools, groups or an effect")
	case len(r.Tools) > maxNames || len(r.Groups) > maxNames:
		return fmt.Errorf("it names more than %d tools or groups", maxNames)
	case r.Effect != "" && !slices.Contains([]string{"mutating", "idempotent", "readOnly"}, r.Effect):
		return fmt.Errorf("unknown effect %.80q: use mutating, idempotent or readOnly", r.Effect)
	case r.Unless.String() != "" && !r.Unless.Readable():
		return errors.New("unless cannot be read: use the operators of bind, such as {/amount: {max: 1000}}")
	case r.Unless.AllowsMissing():
		return errors.New("unless has missing: allow: calls without the value always wait")
	}
	return r.checkPeople()
}

// checkPeople returns what is wrong with the approvers and times of a rule.
func (r *Rule) checkPeople() error {
	switch {
	case (len(r.From.All) == 0) == (len(r.From.Any) == 0):
		return errors.New("from has neither or both of all and any: name the roles of the approvers in one of them")
	case len(r.From.All)+len(r.From.Any) > maxQuorums:
		return fmt.Errorf("from names more than %d roles", maxQuorums)
	case r.Deadline < 0 || r.Deadline > MaxDeadline:
		return fmt.Errorf("deadline is %s: use a time from 1s to %s", r.Deadline, MaxDeadline)
	case r.Escalate != nil && (r.Escalate.After <= 0 || r.Escalate.After >= r.deadline()):
		return fmt.Errorf("escalate.after is %s: use a time before the deadline of %s", r.Escalate.After, r.deadline())
	}
	for _, s := range r.quorums() {
		if err := s.check(); err != nil {
			return err
		}
	}
	return checkDistinct(r.From.All)
}

// checkDistinct returns an error if two of all quorums are of the same people: one vote would fill
// both.
func checkDistinct(all []Quorum) error {
	for i, s := range all {
		if slices.ContainsFunc(all[:i], func(other Quorum) bool { return other.Role == s.Role }) {
			name := "operators"
			if s.Role != "" {
				name = fmt.Sprintf("role %.80q", s.Role)
			}
			return fmt.Errorf("from.all names %s twice, and one person would be enough: set count in place of that", name)
		}
	}
	return nil
}

func (s Quorum) check() error {
	switch {
	case s.Operator == (s.Role != ""):
		return errors.New("an approver needs a role, or operator: true")
	case s.Count < 0 || s.Count > maxCount:
		return fmt.Errorf("count is %d: use a number from 1 to %d", s.Count, maxCount)
	}
	return nil
}

// quorums returns all quorums of a rule, with the quorum of its escalation.
func (r *Rule) quorums() []Quorum {
	list := slices.Concat(r.From.All, r.From.Any)
	if r.Escalate != nil {
		list = append(list, r.Escalate.To)
	}
	return list
}

// String returns a rule in words, on one line.
func (r Rule) String() string {
	var parts []string
	for _, p := range [][2]string{
		{"tools ", strings.Join(r.Tools, ", ")}, {"groups ", strings.Join(r.Groups, ", ")}, {"effect ", r.Effect}, {"unless ", r.Unless.String()},
	} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(append(parts, "from "+r.From.String()), "; ")
}

// String returns the approvers in words, as "finance and 2 of security".
func (a Approvers) String() string {
	list, sep := a.All, " and "
	if len(a.Any) > 0 {
		list, sep = a.Any, " or "
	}
	var names []string
	for _, q := range list {
		names = append(names, q.String())
	}
	return strings.Join(names, sep)
}

// RoleNames returns the names of the roles whose people approve, each once.
func (r *Rule) RoleNames() []string {
	var names []string
	for _, s := range r.quorums() {
		if s.Role != "" && !slices.Contains(names, s.Role) {
			names = append(names, s.Role)
		}
	}
	return names
}

// Equal reports whether two rules are the same.
func (r *Rule) Equal(other *Rule) bool { return string(encode(r)) == string(encode(other)) }

func (r *Rule) deadline() time.Duration {
	if r.Deadline == 0 {
		return DefaultDeadline
	}
	return r.Deadline
}

// Admits reports whether a vote counts for a rule when the request has waited for a time.
func (r *Rule) Admits(v Vote, waited time.Duration) bool {
	return slices.ContainsFunc(r.activeQuorums(waited), func(s Quorum) bool { return s.admits(v) })
}

// activeQuorums returns the quorums whose people may vote after a time.
func (r *Rule) activeQuorums(waited time.Duration) []Quorum {
	if r.Escalate != nil && waited < r.Escalate.After {
		return slices.Concat(r.From.All, r.From.Any)
	}
	return r.quorums()
}

// isSatisfied reports whether votes, each of another person, are enough for a rule.
func (r *Rule) isSatisfied(votes []Vote, waited time.Duration) bool {
	enough := func(s Quorum) bool { return s.isFilled(votes) }
	missing := func(s Quorum) bool { return !s.isFilled(votes) }
	switch {
	case r.Escalate != nil && waited >= r.Escalate.After && enough(r.Escalate.To):
		return true
	case len(r.From.All) > 0:
		return !slices.ContainsFunc(r.From.All, missing)
	}
	return slices.ContainsFunc(r.From.Any, enough)
}

func (s Quorum) admits(v Vote) bool {
	if s.Operator {
		return v.Operator
	}
	return !v.Operator && s.Role != "" && s.Role == v.Role
}

// isFilled reports whether enough of the votes are of people of the quorum.
func (s Quorum) isFilled(votes []Vote) bool {
	n := 0
	for _, v := range votes {
		if s.admits(v) {
			n++
		}
	}
	return n >= max(1, s.Count)
}

// Rules are the rules of one call, all of which must be satisfied.
type Rules []Rule

// ForArguments returns the rules that select a call with these arguments, in order. It leaves out
// rules whose Unless allows the arguments. args must be strict JSON. A value that is missing,
// null, of another type or too costly to check is not allowed, so people are asked. Defaults of
// the tool's schema do not count: the call itself must have the value.
func (l Rules) ForArguments(args json.RawMessage, inputs bounds.TaskInputs) Rules {
	return slices.DeleteFunc(slices.Clone(l), func(r Rule) bool { return r.exempts(args, inputs) })
}

// exempts reports whether Unless of a rule allows arguments.
func (r *Rule) exempts(args json.RawMessage, inputs bounds.TaskInputs) bool {
	return r.Unless.Readable() && !r.Unless.AllowsMissing() && r.Unless.CheckArguments(args, inputs) == nil
}

// Contains reports whether each rule of other is among the rules.
func (l Rules) Contains(other Rules) bool {
	return !slices.ContainsFunc(other, func(r Rule) bool {
		return !slices.ContainsFunc(l, func(known Rule) bool { return known.Equal(&r) })
	})
}

// Add returns the rules, and the rules of list that are not among them.
func (l Rules) Add(list []Rule) Rules {
	for _, r := range list {
		if !l.Contains(Rules{r}) {
			l = append(slices.Clip(l), r)
		}
	}
	return l
}

// Satisfied reports whether votes, each of another person, are enough for all rules when the
// request has waited for a time. It returns false for no rules.
func (l Rules) Satisfied(votes []Vote, waited time.Duration) bool {
	return len(l) > 0 && !slices.ContainsFunc(l, func(r Rule) bool { return !r.isSatisfied(votes, waited) })
}

// Admits reports whether a vote counts for one of the rules.
func (l Rules) Admits(v Vote, waited time.Duration) bool {
	return slices.ContainsFunc(l, func(r Rule) bool { return r.Admits(v, waited) })
}

// Deadline returns how long a request may wait: the shortest time of the rules.
func (l Rules) Deadline() time.Duration {
	shortest := MaxDeadline
	for _, r := range l {
		shortest = min(shortest, r.deadline())
	}
	return shortest
}

// AllowsSelf reports whether the person who started the task may approve: each rule says so.
func (l Rules) AllowsSelf() bool {
	return len(l) > 0 && !slices.ContainsFunc(l, func(r Rule) bool { return !r.Self })
}

// Escalations returns the escalations of the rules, the first ones first.
func (l Rules) Escalations() []Escalation {
	var list []Escalation
	for _, r := range l {
		if r.Escalate != nil {
			list = append(list, *r.Escalate)
		}
	}
	slices.SortStableFunc(list, func(a, b Escalation) int { return cmp.Compare(a.After, b.After) })
	return list
}

// String returns who a quorum is, as "2 of finance" or "operator".
func (s Quorum) String() string {
	name := s.Role
	if s.Operator {
		name = "operator"
	}
	if s.Count > 1 {
		return strconv.Itoa(s.Count) + " of " + name
	}
	return name
}

// Digest returns a hash that is equal for equal rules in the same order.
func (l Rules) Digest() string { return digest(encode(l)) }

// encode returns the JSON of a type of this package, which always marshals.
func encode(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// DigestJSON returns a hash of a JSON document. The hash does not depend on white space, on
// the order of keys or on how a text is escaped. Numbers count as they are written: 1 and 1.0
// have different hashes. Text that is not one JSON document is hashed as it is.
func DigestJSON(doc json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.InputOffset() != int64(len(bytes.TrimRight(doc, " \t\r\n"))) {
		return digest(append([]byte("raw\x00"), doc...))
	}
	return digest(encode(v)) // maps marshal with sorted keys
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
