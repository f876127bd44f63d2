package argschema_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
)

// The names of the object with an unknown property are listed, in the order in which they are
// shown. Where the shown schema does not say them, none are.
func TestValidateShown_ListsKnownNames(t *testing.T) {
	input := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
		"to":{"type":"string"},"a":{"type":"string"},"hidden":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","properties":{"x.y":{}},"additionalProperties":false}},
		"more":{"type":"object","additionalProperties":false}}}`)
	shown := json.RawMessage(`{"type":"object","properties":{
		"to":{},"a":{},"list":{"items":{"properties":{"x.y":{}}}}}}`)
	schema, err := argschema.Compile(input)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"pth":1}`:             `unknown property pth, known are to, a, list`,
		`{"b":1,"a b":1}`:       `unknown property ["a b"], b, known are to, a, list`,
		`{"list":[{},{"z":1}]}`: `list[1]: unknown property z, known are ["x.y"]`,
		`{"more":{"z":1}}`:      `more: unknown property z`,
		`{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7}`: `unknown property 1, 2, 3, 4, 5 and 2 more, known are to, a, list`,
	} {
		if got := errcode.Message(schema.ValidateShown([]byte(args), shown)); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	if got, want := errcode.Message(schema.ValidateShown([]byte(`{"more":{"z":1},"z":1}`), json.RawMessage(`not JSON`), input)), "unknown property z, known are to, a, hidden, list, more; more: unknown property z"; got != want {
		t.Errorf("with a second schema: got %q, want %q", got, want)
	}
	if got, want := errcode.Message(schema.ValidateShown([]byte(`{"z":1}`), json.RawMessage(`not JSON`))), "unknown property z"; got != want {
		t.Errorf("a shown schema that is not JSON: got %q, want %q", got, want)
	}
}
