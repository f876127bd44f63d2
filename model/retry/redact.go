package retry

import "github.com/rolecall/rolecall/model"

// redact takes the provider's key out of an answer: a server that echoes what it
// is sent must not bring the key into the journal.
func (m *Model) redact(a *model.Answer) {
	h := m.secret
	a.Text, a.Value, a.Reasoning = h.Redact(a.Text), h.JSON(a.Value), h.JSON(a.Reasoning)
	for i := range a.Calls {
		c := &a.Calls[i]
		c.Name, c.Provider, c.Args = h.Redact(c.Name), h.Redact(c.Provider), h.JSON(c.Args)
	}
}

// redactDelta is hide for what is shown as it comes. A key that comes in pieces is
// seen by who watches, and kept nowhere.
func (m *Model) redactDelta(d model.Delta) model.Delta {
	h := m.secret
	d.Text, d.Tool, d.Args = h.Redact(d.Text), h.Redact(d.Tool), h.Redact(d.Args)
	return d
}
