package steady

import "github.com/rolecall/rolecall/model"

// hide takes the provider's key out of an answer: a server that echoes what it
// is sent must not bring the key into the journal.
func (m *Model) hide(a *model.Answer) {
	h := m.secret
	a.Text, a.Value, a.Reasoning = h.Hide(a.Text), h.JSON(a.Value), h.JSON(a.Reasoning)
	for i := range a.Calls {
		c := &a.Calls[i]
		c.Name, c.Provider, c.Args = h.Hide(c.Name), h.Hide(c.Provider), h.JSON(c.Args)
	}
}

// piece is hide for what is shown as it comes. A key that comes in pieces is
// seen by who watches, and kept nowhere.
func (m *Model) piece(d model.Delta) model.Delta {
	h := m.secret
	d.Text, d.Tool, d.Args = h.Hide(d.Text), h.Hide(d.Tool), h.Hide(d.Args)
	return d
}
