package parameter

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
)

// MaxSchema is how many bytes the schemas of a Set may have. Package tool does not
// accept longer ones.
const MaxSchema = 256 << 10

// Set holds the checked parameters of one tool. It is immutable and safe for
// concurrent use. The zero Set has no parameters.
type Set struct {
	list    []*parameter    // ordinary parameters, then the parameters of the template
	indexes map[string]int  // the index of each name in list
	schema  json.RawMessage // what Schema returns; nil in the zero Set

	anchored []string // what AnchoredNames returns
}

// parameter is a parameter that CompileSet has checked.
type parameter struct {
	name     string
	spec     *typeSpec
	required bool

	hasDefault   bool
	defaultJSON  gjson.Result
	defaultValue any // as a call uses it

	isCopy   bool       // the value is the value of from
	from     *parameter // nil if it could not be resolved
	auth     []Claim
	secure   bool
	template bool
	secret   bool // the value must not be logged: it is secure, a claim, or a copy of one
}

// isArgument reports whether the value is one of the call's arguments.
func (p *parameter) isArgument() bool { return !p.isCopy && len(p.auth) == 0 && !p.secure }

// isOptional reports whether the value may be missing.
func (p *parameter) isOptional() bool { return !p.required || p.hasDefault }

// OrdinaryNames returns the names of the parameters that are bound, in order.
func (s *Set) OrdinaryNames() []string {
	return s.names(func(p *parameter) bool { return !p.template })
}

// TemplateNames returns the names of the template parameters, in order.
func (s *Set) TemplateNames() []string { return s.names(func(p *parameter) bool { return p.template }) }

// AnchoredNames returns the names of the parameters with an entry of Allowed that is an
// expression only because of Options.AnchorAllowed.
func (s *Set) AnchoredNames() []string { return slices.Clone(s.anchored) }

// AllowedTexts returns the values that the named parameter may have, as texts. These are the values
// of a list, and true and false for a boolean. It returns nil if there are others.
func (s *Set) AllowedTexts(name string) (texts []string) {
	i, ok := s.indexes[name]
	if !ok {
		return nil
	}
	f := s.list[i].spec
	switch {
	case len(f.allowed.expressions) > 0:
		return nil
	case f.allowed.empty() && f.kind == TypeBoolean:
		return []string{"true", "false"}
	}
	for _, v := range f.allowed.values {
		texts = append(texts, v.String())
	}
	return texts
}

func (s *Set) names(among func(*parameter) bool) (names []string) {
	for _, p := range s.list {
		if among(p) {
			names = append(names, p.name)
		}
	}
	return names
}

// AllowsFreeText reports whether a template parameter accepts strings that are neither
// quoted nor listed in the configuration. A caller can then write any part of the
// statement.
func (s *Set) AllowsFreeText() bool {
	return slices.ContainsFunc(s.list, func(p *parameter) bool { return p.template && p.spec.isUnrestricted() })
}

// ClaimServices returns, for each parameter that is a claim, the services that may have
// it, in order. It returns nil if there is no such parameter.
func (s *Set) ClaimServices() map[string][]string {
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

// HasSecure reports whether there are secure parameters. Such a tool can be called with
// secure arguments only.
func (s *Set) HasSecure() bool {
	for _, p := range s.list {
		if p.secure {
			return true
		}
	}
	return false
}
