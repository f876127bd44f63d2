package config

import "cmp"

// models are models by name.
type models map[string]Model

// deferCheck keeps a question until the whole configuration is read and what it
// names is there.
func (r *reader) deferCheck(ask func(used models)) { r.deferredChecks = append(r.deferredChecks, ask) }

func (r *reader) runDeferred() {
	used := models{}
	for _, m := range r.config.Used() {
		used[m.Name] = m
	}
	for _, ask := range r.deferredChecks {
		ask(used)
	}
}

// checkPlanPattern refuses a role's plan where nobody can write one.
func (v value) checkPlanPattern(role Role, used models) {
	m := used[cmp.Or(role.Model, v.doc.config.Organization.Model)]
	if m.Type == "script" || m.Type == "human" {
		v.fail("its model "+quote(m.Name)+" is of type "+m.Type+", which writes no plans", "leave the pattern out, or give the role a language model")
	}
}

// requirePrices refuses a model whose answers would not count against the budget.
func (it docItem) requirePrices(used models) {
	if _, asked := used[it.name]; asked && it.doc.config.Organization.Budget.Cost > 0 {
		it.missing("prices").fail("are missing, and the organization's budget.cost counts by them", "as {input: 1.25, output: 10} for a million tokens, or {input: 0} when it costs nothing")
	}
}

// Used lists the models that the organization or a role names, and their
// fallbacks, in the order of documents.
func (c *Config) Used() (list []Model) {
	named := map[string]bool{c.Organization.Model: true}
	for _, r := range c.Roles {
		named[r.Model] = true
	}
	asked := map[string]bool{}
	for _, m := range c.Models {
		if named[m.Name] {
			asked[m.Name] = true
			for _, name := range m.Fallback { // whose own fallbacks are not asked
				asked[name] = true
			}
		}
	}
	for _, m := range c.Models {
		if asked[m.Name] {
			list = append(list, m)
		}
	}
	return list
}
