package app

import "github.com/rolecall/rolecall/org"

// reportLostGroups warns about the roles that have lost a group because its owner changed,
// once for each loss.
func (a *App) reportLostGroups() {
	now := map[org.LostGroup]bool{}
	for _, g := range a.Runtime.Org().LostGroups() {
		now[g] = true
		if !a.lost[g] {
			a.options.Warn.Warn("a role lost a tool group: its owner changed; write the role again to accept the new owner",
				"role", g.Role, "group", g.Group, "was", g.Was, "is", g.Is)
		}
	}
	a.lost = now
}
