package config

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall/model/catalog"
)

// findFacts returns what is known about a model at the provider's own address. Elsewhere
// the name may mean another model.
func (m Model) findFacts() (catalog.ModelFacts, bool) {
	if m.BaseURL != "" {
		return catalog.ModelFacts{}, false
	}
	return catalog.FindFacts(m.Type, m.Model)
}

// window returns the context window of the document, or else the known one. It is 0 if
// there is none.
func (m Model) window() int {
	facts, _ := m.findFacts()
	return cmp.Or(m.ContextWindow, facts.Window)
}

// setListedPrices sets the known prices of models without prices. It does not if a document has
// prices in another currency, since the costs of all models are added.
func (c *Config) setListedPrices() {
	if slices.ContainsFunc(c.Models, func(m Model) bool { return !m.Prices.isFree() && m.Prices.Currency != catalog.FactsCurrency }) {
		return
	}
	for i := range c.Models {
		m := &c.Models[i]
		if facts, ok := m.findFacts(); ok && !m.Prices.Given {
			m.Prices = Prices{
				Input: billionths(facts.InputPrice), Output: billionths(facts.OutputPrice), Cached: billionths(facts.CachedPrice),
				Currency: catalog.FactsCurrency, Listed: true,
			}
		}
	}
}
