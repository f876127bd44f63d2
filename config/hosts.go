package config

import (
	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/org/hosts"
)

// hostRuleField reads {allow: [...], deny: [...]}. Without allow, every host that
// deny does not match is allowed; an empty allow allows no host.
func hostRuleField(to **hosts.Rule) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping of allow and deny", "for example {allow: [api.example.com, \"*.example.org\"]}")
			return
		}
		rule := hosts.Any()
		v.fields([]field{{"allow", hostList(&rule.Allow)}, {"deny", hostList(&rule.Deny)}})
		*to = &rule
	}
}

// hostList reads a list of host patterns.
func hostList(to *[]hosts.Pattern) func(value) {
	return func(v value) {
		*to = []hosts.Pattern{} // an invalid list allows no host
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of hosts", `for example [api.example.com, "*.example.org", "localhost:8443"]`)
			return
		}
		seen := make(map[hosts.Pattern]bool)
		for _, item := range v.items() {
			p, ok := item.hostPattern()
			if ok && seen[p] {
				item.fail(quote(p.String())+" is listed twice", "")
				continue
			}
			if ok {
				*to, seen[p] = append(*to, p), true
			}
		}
	}
}

// hostPattern reads a pattern as hosts.ParsePattern does.
func (v value) hostPattern() (hosts.Pattern, bool) {
	text, ok := v.nonEmpty()
	if !ok {
		return hosts.Pattern{}, false
	}
	p, err := hosts.ParsePattern(text)
	if err != nil {
		v.fail(quote(v.node.Value)+": "+err.Error(), `write a name, "*.example.org" for its subdomains, or "*"; add :port for one port`)
	}
	return p, err == nil
}
