package parameter

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// MaxSchema is how many bytes the schemas of a Set may have; package tool
// takes no longer ones.
const MaxSchema = 256 << 10

// Set is the checked parameters of one tool. It never changes; all methods are
// safe for concurrent use. The zero Set has no parameters.
type Set struct {
	list   []*parameter // ordinary ones, then those of the template
	places map[string]int
	schema json.RawMessage // that Schema gives; nil of the zero Set
}

// parameter is one that has been checked.
type parameter struct {
	name     string
	form     *typeSpec
	required bool

	hasDefault bool // there is a default:
	raw        gjson.Result
	value      any

	copy     bool // of the value of from
	from     *parameter
	auth     []Claim
	secure   bool
	template bool
	secret   bool // its value is not for logs: it is secure, a claim, or a copy of one
}

// offered says whether callers give the value in their arguments.
func (p *parameter) offered() bool { return !p.copy && len(p.auth) == 0 && !p.secure }

// optional says whether a caller may leave the value out.
func (p *parameter) optional() bool { return !p.required || p.hasDefault }

// Ordinary gives the names of the parameters that are bound, in order.
func (s *Set) Ordinary() []string { return s.names(false) }

// Templates gives the names of the template parameters, in order.
func (s *Set) Templates() []string { return s.names(true) }

func (s *Set) names(template bool) (names []string) {
	for _, p := range s.list {
		if p.template == template {
			names = append(names, p.name)
		}
	}
	return names
}

// FreeText says whether a template parameter takes texts that are neither quoted
// nor listed in the configuration: what is written may then be anything.
func (s *Set) FreeText() bool {
	return slices.ContainsFunc(s.list, func(p *parameter) bool { return p.template && p.form.unrestricted() })
}

// Services gives, for each parameter that claims give, the services that may
// have it, in order; nil if there is no such parameter.
func (s *Set) Services() map[string][]string {
	var all map[string][]string
	for _, p := range s.list {
		for _, c := range p.auth {
			if all == nil {
				all = map[string][]string{}
			}
			all[p.name] = append(all[p.name], c.Service)
		}
	}
	return all
}

// Secure says whether there are secure parameters, so that only a caller with
// secure arguments can call the tool.
func (s *Set) Secure() bool {
	for _, p := range s.list {
		if p.secure {
			return true
		}
	}
	return false
}
