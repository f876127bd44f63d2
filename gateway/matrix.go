package gateway

import (
	"net/http"
	"sort"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Limits of an answer of the matrix.
const (
	maxMatrixTools = 1000
	maxMatrixCells = 100_000 // roles times tools; an answer has one role at least
)

// showMatrix answers which roles may call which tools: for each pair what checkAccess says. A
// caller is shown its own role and the tools that it sees.
func (a *api) showMatrix(r *http.Request) (any, error) {
	v, params := a.visibilityFor(r), r.URL.Query()
	if err := v.checkState(params.Get("state")); err != nil {
		return nil, err
	}
	list, err := v.toolsIn(params.Get("group"))
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r)
	if err != nil {
		return nil, err
	}
	list, next := matrixTools(list, params.Get("fromTool"))
	out := wire.Matrix{Tools: []wire.MatrixTool{}, NextTool: next, Epoch: a.org().CurrentEpoch()}
	for _, h := range list {
		out.Tools = append(out.Tools, wire.MatrixTool{Name: h.Definition.Name, Group: v.groupOf(h), Effect: h.Definition.Effect.String()})
	}
	p.limit = matrixRows(p.limit, len(list))
	out.Page = pageOf(p, a.matrixRoles(v), roleKey, func(role org.Role) wire.MatrixRow {
		return a.matrixRow(v, role, params.Get("state"), out.Tools)
	})
	return out, nil
}

// matrixRoles returns the roles that a sender may ask about, sorted by roleKey. Root has no name.
func (a *api) matrixRoles(v visibility) []org.Role {
	switch {
	case v.all:
		return append([]org.Role{{ID: org.RootRole}}, a.org().ListRoles()...)
	case v.role.ID != "":
		return []org.Role{v.role}
	}
	return nil
}

// matrixTools returns the tools of a list from a name on. It also returns the name of the first
// tool that it leaves out. The list is sorted by name.
func matrixTools(list []*toolgroups.ToolHandle, from string) (tools []*toolgroups.ToolHandle, next string) {
	list = list[sort.Search(len(list), func(i int) bool { return list[i].Definition.Name >= from }):]
	if len(list) > maxMatrixTools {
		return list[:maxMatrixTools], list[maxMatrixTools].Definition.Name
	}
	return list, ""
}

// matrixRows returns how many roles an answer with so many tools has at most.
func matrixRows(limit, tools int) int { return min(limit, max(1, maxMatrixCells/max(1, tools))) }

// matrixRow returns which of the tools a role may call.
func (a *api) matrixRow(v visibility, role org.Role, state string, tools []wire.MatrixTool) wire.MatrixRow {
	query := a.roleQuery(role.ID, state, nil)
	if !v.all {
		query = a.callerRoleQuery(v.caller, state, nil)
	}
	row := wire.MatrixRow{ID: role.ID, Name: a.roleName(role.ID), Allowed: []string{}}
	for _, t := range tools {
		if !query.allows(t.Name) {
			continue
		}
		row.Allowed = append(row.Allowed, t.Name)
		if query.mayWait(t.Name) {
			row.Waits = append(row.Waits, t.Name)
		}
	}
	return row
}
