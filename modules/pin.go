package modules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/rolecall/rolecall/tool"
)

// ToolPin is the definition of one tool as an external server offers it. It is what an
// operator accepts or rejects.
type ToolPin struct {
	Tool string `json:"tool"` // the server's name for it
	// Kind is "" for a tool of the server. Otherwise the module makes the tool itself,
	// and the server only says that it can be offered. Description is then the
	// description of the module, for people to read.
	Kind        string          `json:"kind,omitempty"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Listing     tool.Listing    `json:"listing,omitzero"` // what clients of MCP are told besides
}

// Digest returns the SHA-256 of the whole definition, as 64 hex digits. It does not
// depend on the order of keys and the white space of JSON; invalid JSON counts byte by
// byte. The description counts only if Kind is "", and Listing only if it says something.
func (p ToolPin) Digest() string {
	if p.Kind != "" {
		p.Description = ""
	}
	parts := []string{"pin 1", p.Tool, p.Kind, p.Description, canonical(p.Input), canonical(p.Annotations)}
	if l := p.Listing; !l.IsZero() {
		parts = append(parts, l.Title, canonical(l.Output), canonical(l.Icons), canonical(l.Meta))
	}
	text, _ := json.Marshal(parts) // strings always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// canonical returns JSON with sorted keys and without white space. Numbers keep their
// digits. A prefix distinguishes invalid JSON, which is returned as it is.
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
