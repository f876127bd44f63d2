package steady

import (
	"bytes"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// hide takes the provider's key out of an answer: a server that echoes what it
// is sent must not bring the key into the journal.
func (m *Model) hide(a *model.Answer) {
	if m.config.Secret == "" {
		return
	}
	a.Text, a.Value, a.Reasoning = m.text(a.Text), m.json(a.Value), m.json(a.Reasoning)
	for i := range a.Calls {
		c := &a.Calls[i]
		c.Name, c.Provider, c.Args = m.text(c.Name), m.text(c.Provider), m.json(c.Args)
	}
}

// piece is hide for what is shown as it comes. A key that comes in pieces is
// seen by who watches, and kept nowhere.
func (m *Model) piece(d model.Delta) model.Delta {
	if m.config.Secret != "" {
		d.Text, d.Tool, d.Args = m.text(d.Text), m.text(d.Tool), m.text(d.Args)
	}
	return d
}

const hidden = "***"

func (m *Model) text(s string) string { return strings.ReplaceAll(s, m.config.Secret, hidden) }

func (m *Model) json(doc []byte) []byte {
	if doc == nil {
		return nil
	}
	return bytes.ReplaceAll(doc, []byte(m.config.Secret), []byte(hidden))
}
