package app

import "github.com/rolecall/rolecall/org"

// reportUnknownNames warns about tools, groups and arguments that bounds and approval rules name
// and that do not exist, once for each as long as it does not exist.
func (a *App) reportUnknownNames() {
	now := map[org.UnknownName]bool{}
	for _, u := range a.Runtime.Org().UnknownNames() {
		if now[u] = true; a.unknown[u] {
			continue
		}
		where := []any{"role", u.Role}
		if u.Role == org.RootRole {
			where = []any{"document", "organization"}
		}
		switch u.Field {
		case "bind":
			a.options.Warn.Warn("bind names a tool that does not exist; the bound holds once it does", append(where, "tool", u.Name)...)
		case "unless":
			a.options.Warn.Warn("approval names an argument in unless that the tool lacks; all calls of the tool wait", append(where, "argument", u.Name)...)
		default:
			a.options.Warn.Warn("approval names "+u.Field+" that do not exist; the rule selects them once they do", append(where, "name", u.Name)...)
		}
	}
	a.unknown = now
}
