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
		Findings: lintFindings(lint.Findings), Tools: lintTools(lint.Tools), Denied: lintTools(lint.Refused),
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

// listJoins lists the roles that join all flags.
func (a *api) listJoins(r *http.Request) (any, error) {
	key := func(j runtime.JoiningRole) string { return j.Role.Name + "\x00" + string(j.Role.ID) }
	return paginate(r, a.rt.JoiningRoles(), key, func(j runtime.JoiningRole) wire.RoleJoins {
		return wire.RoleJoins{RoleID: j.Role.ID, Role: j.Role.Name, Findings: lintFindings(j.Joins)}
	})
}

func lintFindings(list []runtime.LintFinding) []wire.LintFinding {
	out := make([]wire.LintFinding, len(list))
	for i, f := range list {
		out[i] = wire.LintFinding{Kind: string(f.Kind), Set: string(f.Set), Group: f.Group, Tools: f.Tools}
		for _, j := range f.Flags {
			out[i].Joined = append(out[i].Joined, joinedFlag(j))
		}
	}
	return out
}

// maxJoinedTools is the most tools that a wire.JoinedFlag names.
const maxJoinedTools = 20

func joinedFlag(j runtime.JoinedFlag) wire.JoinedFlag {
	out := wire.JoinedFlag{
		Flag: j.Flag.String(), Tool: j.Tool, FlagsKnown: j.Known,
		Tools: j.Tools[:min(len(j.Tools), maxJoinedTools)], ToolCount: len(j.Tools), ExactTools: j.Exact, Changes: []wire.LintChange{},
	}
	for _, c := range j.Changes {
		out.Changes = append(out.Changes, wire.LintChange{Set: string(c.Set), Group: c.Group, ReadPart: c.ReadPart})
	}
	return out
}
