package app

import "github.com/rolecall/rolecall/org"

// reportLostGroups warns about roles that have lost a group because its owner changed. It also
// warns about groups that root may not grant any more for this reason. It warns once for each loss.
func (a *App) reportLostGroups() {
	now := map[org.LostGroup]bool{}
	for _, g := range a.Runtime.Org().LostGroups() {
		if now[g] = true; a.reportedLost[g] {
			continue
		}
		text, who := "a role lost a tool group: its owner changed; write the role again to accept the new owner", []any{"role", g.Role}
		if g.Role == org.RootRole {
			text, who = "root may not grant a tool group any more: its owner changed; remove it from organization.grant, then add it again, to accept the new owner", nil
		}
		a.options.Warn.Warn(text, append(who, "group", g.Group, "was", g.Was, "is", g.Is)...)
	}
	a.reportedLost = now
}
