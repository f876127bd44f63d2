package tool

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/argschema"
)

// Listing is what clients of the Model Context Protocol are told of a tool beside its name,
// description and schema. Models that this runtime asks do not read it. The zero Listing says
// nothing.
type Listing struct {
	Title  string          `json:"title,omitempty"`        // a name for people
	Output json.RawMessage `json:"outputSchema,omitempty"` // a JSON schema of type object that Result.Structured fits unless IsError is set
	Icons  json.RawMessage `json:"icons,omitempty"`        // a JSON array of icons of the protocol
	Meta   json.RawMessage `json:"_meta,omitempty"`        // a JSON object with what the protocol does not define
}

// check returns an error unless the parts are what they should be.
func (l Listing) check() error {
	var (
		output struct{ Type string }
		icons  []json.RawMessage
		meta   map[string]json.RawMessage
	)
	switch {
	case l.Output != nil && (json.Unmarshal(l.Output, &output) != nil || output.Type != "object"):
		return fmt.Errorf("the output schema must be a JSON object with the type object")
	case l.Icons != nil && json.Unmarshal(l.Icons, &icons) != nil:
		return fmt.Errorf("the icons must be a JSON array")
	case l.Meta != nil && json.Unmarshal(l.Meta, &meta) != nil:
		return fmt.Errorf("_meta must be a JSON object")
	case l.Output == nil:
		return nil
	}
	if _, err := argschema.Compile(l.Output); err != nil {
		return fmt.Errorf("the output schema: %w", err)
	}
	return nil
}

// clone returns a Listing that shares no memory with l.
func (l Listing) clone() Listing {
	return Listing{l.Title, slices.Clone(l.Output), slices.Clone(l.Icons), slices.Clone(l.Meta)}
}

// IsZero reports whether the Listing says nothing.
func (l Listing) IsZero() bool {
	return l.Title == "" && l.Output == nil && l.Icons == nil && l.Meta == nil
}
