package retry

import "github.com/rolecall/rolecall/model"

// redact removes the provider's key from an answer: a server that echoes requests
// must not bring the key into the journal.
func (m *Model) redact(a *model.Answer) {
	r := m.secret
	a.Text, a.Value, a.Reasoning = r.Redact(a.Text), r.JSON(a.Value), r.JSON(a.Reasoning)
	for i := range a.Calls {
		c := &a.Calls[i]
		c.Name, c.Provider, c.Args = r.Redact(c.Name), r.Redact(c.Provider), r.JSON(c.Args)
	}
}

// redactDelta removes the provider's key from a delta. A key split over several
// deltas is not found; deltas are shown but never stored.
func (m *Model) redactDelta(d model.Delta) model.Delta {
	r := m.secret
	d.Text, d.Tool, d.Args = r.Redact(d.Text), r.Redact(d.Tool), r.Redact(d.Args)
	return d
}
