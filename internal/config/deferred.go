package config

import (
	"cmp"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// models maps the names of models to the models.
type models map[string]Model

// deferCheck queues a check that needs the whole configuration. The check gets
// the models that are used, as Config.UsedModels returns them.
func (r *reader) deferCheck(check func(used models)) {
	r.deferredChecks = append(r.deferredChecks, check)
}

// runDeferred runs the queued checks.
func (r *reader) runDeferred() {
	used := models{}
	for _, m := range r.config.UsedModels() {
		used[m.Name] = m
	}
	for _, check := range r.deferredChecks {
		check(used)
	}
}

// checkPlanPattern rejects the pattern plan for a role whose model cannot write
// plans.
func (r *reader) checkPlanPattern(v yamldoc.Value, role Role) {
	m, _ := r.config.ChooseModel(cmp.Or(role.Model, r.config.Organization.Model))
	if m.Type == ModelScript || m.Type == ModelHuman {
		v.AddError("its model "+yamldoc.QuoteText(m.Name)+" is of type "+m.Type+", which cannot write plans", "leave the pattern out, or set a language model for the role")
	}
}

// requirePrices rejects a model without prices if the organization limits costs:
// its answers would not count against the budget.
func (it item) requirePrices(used models) {
	if m, ok := used[it.Name]; ok && !m.Prices.Given && !m.Prices.Listed && it.r.config.Organization.Budget.Cost > 0 {
		it.MissingField("prices").AddError("are missing; the organization's budget.cost needs them", "for example {input: 1.25, output: 10} for a million tokens, or {input: 0} if the model is free")
	}
}

// requireOneCurrency rejects a model if its prices have another currency than the prices of the
// first model that is used and not free. The costs of all models are added.
func (it item) requireOneCurrency(used models) {
	m, ok := used[it.Name]
	if !ok || m.Prices.isFree() {
		return
	}
	for _, first := range it.r.config.UsedModels() {
		if first.Prices.isFree() {
			continue
		}
		if first.Prices.Currency != m.Prices.Currency {
			prices, _ := it.FindField("prices") // a model without is free
			prices.LocatePath("currency").AddError("is "+describeCurrency(m)+", and that of model "+yamldoc.QuoteText(first.Name)+" is "+describeCurrency(first), "the costs of all models are added, so use one currency")
		}
		return
	}
}

// describeCurrency returns the currency of a model in words.
func describeCurrency(m Model) string { return cmp.Or(m.Prices.Currency, "not given") }

// UsedModels returns the models that the organization or a role names and the fallbacks
// of those models, in the order of documents.
func (c *Config) UsedModels() (list []Model) {
	named := map[string]bool{c.Organization.Model: true}
	for _, r := range c.Roles {
		named[r.Model] = true
	}
	used := map[string]bool{}
	for name := range named {
		m, _ := c.ChooseModel(name)
		used[m.Name] = true
		for _, name := range m.Fallback { // the fallbacks of a fallback are not used
			next, _ := c.ChooseModel(name)
			used[next.Name] = true
		}
	}
	for _, m := range c.Models {
		if used[m.Name] {
			list = append(list, m)
		}
	}
	return list
}
