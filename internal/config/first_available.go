package config

import (
	"slices"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// readFirstAvailable reads a model that stands for the first of several that has its key.
func readFirstAvailable(it item, m *Model) {
	it.ReadFields(yamldoc.Fields{"type": yamldoc.SkipField, "models": modelList(it, &m.Models, "it stands for one of its models")})
	switch at, ok := it.FindField("models"); {
	case !ok:
		it.MissingField("models").AddError("is missing", "for example [claude, gpt, local]")
	case at.IsList() && len(at.Node.Content) == 0:
		at.AddError("is empty", "for example [claude, gpt, local]")
	default:
		list := m.Models
		it.r.deferCheck(func(models) { it.rejectCycle(at, list) })
	}
}

// rejectCycle rejects the models of a list that lead back to the model that has it.
func (it item) rejectCycle(at yamldoc.Value, list []string) {
	for _, name := range list {
		if slices.Contains(it.r.config.standsFor(name), it.Name) {
			at.AddError("leads back to the model itself by way of "+yamldoc.QuoteText(name), "leave one of the two out")
			return
		}
	}
}

// standsFor returns a model's name and the names of all models that it may stand for, in the order
// in which they are tried.
func (c *Config) standsFor(name string) (names []string) {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		i := slices.IndexFunc(c.Models, func(m Model) bool { return m.Name == name })
		if i < 0 || seen[name] {
			return
		}
		seen[name] = true
		names = append(names, name)
		for _, next := range c.Models[i].Models {
			visit(next)
		}
	}
	visit(name)
	return names
}

// ChooseModel returns the model that is used for a name. This is the declared model. For
// a model of type first-available, it is the first model that has its key. If none has,
// it is the first of them. It reports false if there is none.
func (c *Config) ChooseModel(name string) (chosen Model, ok bool) {
	for _, candidate := range c.standsFor(name) {
		m := c.Models[slices.IndexFunc(c.Models, func(m Model) bool { return m.Name == candidate })]
		switch {
		case m.Type == ModelFirstAvailable:
		case m.HasKey():
			return m, true
		case !ok:
			chosen, ok = m, true
		}
	}
	return chosen, ok
}

// HasKey reports whether a model has its API key or needs none.
func (m Model) HasKey() bool { return m.KeyFrom == "" || m.Key != "" }
