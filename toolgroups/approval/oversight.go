package approval

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Operation is a kind of operation of an operator that may wait for people.
type Operation string

// The operations.
const (
	RoleGain   Operation = "role_gain"   // a role that is created or changed gets rights that it did not have
	ApplyItem  Operation = "apply"       // a configuration item is applied or deleted
	ToolAccept Operation = "tool_accept" // the definition of a tool is accepted
	Override   Operation = "override"    // a call is approved in place of its approvers

	// ChangeOversight changes or removes an Oversight. Each Oversight covers it.
	ChangeOversight Operation = "oversight"
)

// Operations lists the operations that an Oversight can name, in a fixed order.
func Operations() []Operation { return []Operation{RoleGain, ApplyItem, ToolAccept, Override} }

// Oversight lets operations of operators wait for people. The operator who asks for an operation
// is never one of them. Operators are told apart by the names of their tokens.
type Oversight struct {
	Operations []Operation   `json:"operations"`
	From       Approvers     `json:"from"`
	Deadline   time.Duration `json:"deadline,omitempty"` // as in Rule
}

// Covers reports whether an operation waits. A nil Oversight covers none.
func (o *Oversight) Covers(op Operation) bool {
	return o != nil && (op == ChangeOversight || slices.Contains(o.Operations, op))
}

// Rules returns the rules that the votes about an operation must satisfy. o must not be nil.
func (o *Oversight) Rules() Rules { return Rules{{From: o.From, Deadline: o.Deadline}} }

// RoleNames returns the names of the roles whose people approve, each once. A nil Oversight has
// none.
func (o *Oversight) RoleNames() []string {
	if o == nil {
		return nil
	}
	return o.Rules()[0].RoleNames()
}

// Equal reports whether two are the same. Nil is equal to nil only.
func (o *Oversight) Equal(other *Oversight) bool { return string(encode(o)) == string(encode(other)) }

// Check returns an error that says what is wrong, nil if o is valid. A nil Oversight is valid.
func (o *Oversight) Check() error {
	if o == nil {
		return nil
	}
	if len(o.Operations) == 0 {
		return fmt.Errorf("it names no operations: use some of %v", Operations())
	}
	for i, op := range o.Operations {
		if !slices.Contains(Operations(), op) {
			return fmt.Errorf("unknown operation %.80q: use some of %v", op, Operations())
		}
		if slices.Contains(o.Operations[:i], op) {
			return fmt.Errorf("operation %q is named twice", op)
		}
	}
	return o.Rules()[0].checkPeople()
}

// CheckApprovable returns an error unless the existing people can approve the operations of any
// one operator. people returns how many people have a role, and operators is the number of operators.
// An operator does not approve its own operations, so one of them never counts.
func (o *Oversight) CheckApprovable(people func(role string) int, operators int) error {
	if o == nil {
		return nil
	}
	missing := func(q Quorum) error {
		need := max(1, q.Count)
		switch {
		case q.Operator && operators-1 < need:
			return fmt.Errorf("operators needed besides the one who asks: %d, there are %d; declare another token with operator: true", need, operators-1)
		case !q.Operator && people(q.Role) < need:
			return fmt.Errorf("people needed in the role %s: %d, tokens and issuers name %d; declare a token with role: %s", q.Role, need, people(q.Role), q.Role)
		}
		return nil
	}
	var errs []error
	for _, q := range slices.Concat(o.From.All, o.From.Any) {
		errs = append(errs, missing(q))
	}
	if len(o.From.Any) > 0 && slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}
