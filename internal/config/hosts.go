package config

import (
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org/hosts"
)

// hostRuleField reads {allow: [...], deny: [...]}. Without allow, every host that
// deny does not match is allowed; an empty allow allows no host.
func hostRuleField(to **hosts.HostRule) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsMapping() {
			v.AddTypeError("a mapping of allow and deny", "for example {allow: [api.example.com, \"*.example.org\"]}")
			return
		}
		rule := hosts.AnyHost()
		v.ReadFields(yamldoc.Fields{"allow": hostList(&rule.Allow), "deny": hostList(&rule.Deny)})
		*to = &rule
	}
}

// hostList reads a list of host patterns.
func hostList(to *[]hosts.HostPattern) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		*to = []hosts.HostPattern{} // an invalid list allows no host
		if !v.IsList() {
			v.AddTypeError("a list of hosts", `for example [api.example.com, "*.example.org", "localhost:8443"]`)
			return
		}
		seen := make(map[hosts.HostPattern]bool)
		for _, item := range v.ListItems() {
			p, ok := readHostPattern(item)
			if ok && seen[p] {
				item.AddError(yamldoc.QuoteText(p.String())+" is listed twice", "")
				continue
			}
			if ok {
				*to, seen[p] = append(*to, p), true
			}
		}
	}
}

// readHostPattern reads a pattern as hosts.ParsePattern does.
func readHostPattern(v yamldoc.Value) (hosts.HostPattern, bool) {
	text, ok := v.ReadNonEmpty()
	if !ok {
		return hosts.HostPattern{}, false
	}
	p, err := hosts.ParsePattern(text)
	if err != nil {
		v.AddError(yamldoc.QuoteText(v.Node.Value)+": "+err.Error(), `write a name, "*.example.org" for its subdomains, or "*"; add :port for one port`)
	}
	return p, err == nil
}
