package modules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Pin is the definition of one tool as somebody outside gives it: what an
// operator accepts or does not.
type Pin struct {
	Tool string `json:"tool"` // the outside's own name for it
	// Kind is "" for a tool of the outside. Else the module makes the tool
	// itself, and all that the outside says is that there is one: Description
	// is the module's, for those who read.
	Kind        string          `json:"kind,omitempty"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// Digest is the SHA-256 of all of the definition, as 64 hex digits. The order
// of keys and the white space of its JSON do not count; JSON that is none
// counts as its bytes. A description that is the module's does not count.
func (p Pin) Digest() string {
	if p.Kind != "" {
		p.Description = ""
	}
	text, _ := json.Marshal([]any{"pin 1", p.Tool, p.Kind, p.Description, canonical(p.Input), canonical(p.Annotations)}) // strings always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// canonical writes JSON with sorted keys and without white space. Numbers
// keep their digits.
func canonical(doc json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if len(doc) == 0 || d.Decode(&v) != nil || d.More() {
		return "raw:" + string(doc)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "raw:" + string(doc)
	}
	return "json:" + string(text)
}
