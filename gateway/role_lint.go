package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/runtime"
)

// lintRole recommends the smallest groups that would have allowed what the record shows.
func (a *api) lintRole(r *http.Request) (any, error) {
	id, err := a.roleID(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	q := runtime.LintQuery{Role: id}
	if q.From, err = timeParam(r, "from"); err != nil {
		return nil, err
	}
	if q.To, err = timeParam(r, "to"); err != nil {
		return nil, err
	}
	lint, err := a.rt.LintRole(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return wire.RoleLint{
		RoleID: id, Role: lint.Role.Name, Revision: lint.Role.Revision, CreatedBy: lint.Role.CreatedBy,
		RecordBegins: lint.Since, From: q.From, To: q.To, FirstCall: lint.First, LastCall: lint.Last,
		Calls: wire.CallCounts{Total: lint.Calls + lint.Denied, Denied: lint.Denied}, OtherCalls: lint.Others, Grants: lint.Grants,
		Used: lint.IsUsed(), Narrows: lint.Narrows(),
		ToolGroups: lintSet(lint.Use, lint.IsUsed()), Grant: lintSet(lint.Grant, lint.IsUsed()),
		Tools: lintTools(lint.Tools), Denied: lintTools(lint.Refused),
	}, nil
}

// lintSet converts a set. It recommends nothing for a role that was not used.
func lintSet(s runtime.SetLint, used bool) wire.LintSet {
	out := wire.LintSet{Held: s.Held, HeldTools: s.HeldTools, Exact: s.Exact, Groups: []wire.LintGroup{}, Unused: s.Unused}
	if used {
		out.Recommended, out.KeptTools = &s.Kept, s.KeptTools
	}
	for _, g := range s.Groups {
		out.Groups = append(out.Groups, wire.LintGroup{
			ID: g.ID, Held: g.Held, Kept: g.Kept && used, Away: g.Away, HasHours: g.HasHours, Tools: g.Tools, UsedTools: g.Used, Calls: g.Calls, Called: g.Called, Fallbacks: g.Fallbacks,
		})
	}
	return out
}

func lintTools(list []runtime.LintedTool) []wire.LintTool {
	out := make([]wire.LintTool, len(list))
	for i, t := range list {
		out[i] = wire.LintTool{Name: t.Name, Group: t.Group, Gone: t.Gone, Calls: t.Calls, OtherCalls: t.Other}
	}
	return out
}
