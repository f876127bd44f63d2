package runtime

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// heldRole is a planned change of a role by an operator, and whether it gains rights.
type heldRole struct {
	verb      string // create or update
	request   any
	was, next org.Role // was is zero for a new role
	diff      *org.PermissionDiff
	gains     bool
	tools     []string // of a new role: what an agent in it could call now
}

// judgeRole calls plan and returns the approval that the planned change may use, or why it is held.
// A change that gains no right needs none; its approval has no id. It is called within a commit.
func (rt *Runtime) judgeRole(b *journal.Batch, from Requester, plan func() (heldRole, error)) (granted Approval, held, err error) {
	if !rt.needsApproval(from.By, approval.RoleGain) {
		return Approval{}, nil, nil
	}
	h, err := plan()
	if err != nil || !h.gains && !rt.renamesApprover(&h) {
		return Approval{}, nil, err
	}
	granted, held = rt.judgeOperation(b, from, h.operation())
	return granted, held, nil
}

// renamesApprover reports whether a change creates a role with a name that approvers have, or
// renames one. Such a name says whose votes count.
func (rt *Runtime) renamesApprover(h *heldRole) bool {
	names := rt.oversight.Load().RoleNames()
	return h.was.Name != h.next.Name && (slices.Contains(names, h.was.Name) || slices.Contains(names, h.next.Name))
}

func (h *heldRole) operation() *operation {
	op := &operation{kind: approval.RoleGain, subject: string(h.was.ID), request: map[string]any{"verb": h.verb, "request": h.request}}
	text := map[string]any{"operation": op.kind, "verb": h.verb, "role": h.next.Name, "changes": roleChanges(&h.was, &h.next)}
	if h.was.ID != "" {
		text["roleId"], text["revision"] = h.was.ID, h.was.Revision
	}
	planned := h.next
	planned.ID, planned.CreatedAt = "", h.was.CreatedAt // new with each attempt to create the role
	record, _ := json.Marshal(planned)                  // a role always marshals
	op.bound = []string{revisionText(h.was.Revision), string(record)}
	if h.diff != nil {
		text["effect"] = h.diff
		lasting, _ := json.Marshal([]any{h.diff.Roles, h.diff.Tasks}) // agents come and go
		op.bound = append(op.bound, string(lasting))
	}
	if h.was.ID == "" {
		text["tools"] = h.tools
		op.bound = append(op.bound, strings.Join(h.tools, "\n"))
	}
	op.text = text
	return op
}

// fieldChange is the change of one field of a role.
type fieldChange struct {
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// roleChanges returns the fields of a role that a change sets, as Role names them in JSON.
func roleChanges(was, next *org.Role) map[string]fieldChange {
	before, after := fieldsOf(was), fieldsOf(next)
	if was.ID == "" {
		before = nil
	}
	changes := map[string]fieldChange{}
	for name, to := range after {
		if from := before[name]; !bytes.Equal(from, to) && !slices.Contains([]string{"id", "createdAt", "createdBy", "createdByRole", "status", "revision"}, name) {
			changes[name] = fieldChange{from, to}
		}
	}
	for name, from := range before {
		if _, kept := after[name]; !kept {
			changes[name] = fieldChange{From: from}
		}
	}
	return changes
}

func fieldsOf(r *org.Role) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	text, _ := json.Marshal(r) // a role always marshals
	_ = json.Unmarshal(text, &fields)
	return fields
}

// planCreate plans CreateRole. A role that exists already gains nothing.
func (rt *Runtime) planCreate(by identity.Principal, spec org.RoleSpec) (heldRole, error) {
	next, err := rt.org.PlanRole(by, spec)
	h := heldRole{verb: "create", request: withoutRequest(spec), next: next}
	if next.ID == "" {
		h.gains = rt.org.Widens(new(org.Role), &next)
		h.tools = rt.org.PlannedTools(&next)
	} else {
		h.was = next
	}
	return h, err
}

// planUpdate plans UpdateRole.
func (rt *Runtime) planUpdate(by identity.Principal, id identity.RoleID, spec org.RoleSpec) (heldRole, error) {
	next, diff, _, err := rt.org.UpdateRole(by, id, spec, org.DryRun)
	was, _ := rt.org.RoleByID(id)
	return heldRole{verb: "update", request: withoutRequest(spec), was: was, next: next, diff: &diff, gains: diff.Gains() || rt.org.Widens(&was, &next)}, err
}

// withoutRequest returns a specification without what says how it was sent: the revision that is
// compared anyway, and the sender.
func withoutRequest(spec org.RoleSpec) org.RoleSpec {
	spec.Revision, spec.Auth = 0, ""
	return spec
}
