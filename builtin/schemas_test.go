package builtin

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/argschema"
)

// The fast check of arguments supports the schemas of all built-in tools: it
// accepts each example, and it agrees with the full validator on random
// changes to the examples.
func TestSchemas_ReadAgreesWithValidate(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for name, tl := range allToolsByName(t) {
		t.Run(name, func(t *testing.T) {
			d := tl.Definition()
			s, err := argschema.Compile(d.Input)
			if err != nil {
				t.Fatal(err)
			}
			example := examples(t, name)[0]
			if fits, err := s.Read(example); err != nil || !fits {
				t.Errorf("%s: got %v, %v, want a fit", example, fits, err)
			}
			for range 300 {
				checkSameVerdict(t, s, mutate(random, example, properties(d.Input)), seed)
			}
		})
	}
}

// checkSameVerdict compares the fast check with the full validator.
func checkSameVerdict(t *testing.T, s *argschema.Schema, args json.RawMessage, seed uint64) {
	t.Helper()
	fits, err := s.Read(args)
	if err != nil {
		return // rejected before the schema is checked
	}
	if valid := s.Validate(args); fits != (valid == nil) {
		t.Errorf("%s: got %v, the full validator returns %v; seed %d", args, fits, valid, seed)
	}
}

// properties returns the names of the properties of a schema and an unknown one.
func properties(schema json.RawMessage) (names []string) {
	var s struct{ Properties obj }
	_ = json.Unmarshal(schema, &s) // it compiled before
	for name := range s.Properties {
		names = append(names, name)
	}
	return append(names, "unknown")
}

// mutate returns an example with random properties removed, added or changed.
func mutate(random *rand.Rand, example json.RawMessage, names []string) json.RawMessage {
	var args obj
	_ = json.Unmarshal(example, &args) // its form is checked by another test
	for range 1 + random.IntN(3) {
		name := names[random.IntN(len(names))]
		if random.IntN(4) == 0 {
			delete(args, name)
			continue
		}
		args[name] = oddValues[random.IntN(len(oddValues))]
	}
	text, _ := json.Marshal(args) // it was decoded before
	return text
}

var oddValues = []any{
	nil, true, false, 0, 1, -1, 0.5, 7, 1000, 1_000_001, int64(1 << 40), "", "a", "a.txt", "https://example.com/", "http://x", "GET", "base64", "*",
	strings.Repeat("é", 300), strings.Repeat("x", 70_000), []any{}, []any{"a"}, []any{1}, []any{"a", "a"}, []any{[]any{}}, make([]string, 300),
	obj{}, obj{"a": "b"}, obj{"a": 1}, obj{"agentId": "a", "role": "b"}, []any{obj{"agentId": "a", "role": "b"}}, []any{obj{"agentId": "a"}},
	obj{"objective": "a", "constraints": []any{}, "inputs": "b", "outputs": []any{"c"}, "completion_criteria": "d"},
	obj{"objective": "a", "collaborators": []any{obj{"agentId": "a", "role": "b", "more": 1}}},
}

// What models read of a schema is a part of what is accepted: its properties exist, and it has
// no keyword of its own, and no bounds.
func TestSchemas_ShownIsPartOfAccepted(t *testing.T) {
	for name, tl := range allToolsByName(t) {
		t.Run(name, func(t *testing.T) {
			d := tl.Definition()
			if strings.Contains(string(d.Input), `"x-`) || strings.Contains(string(d.Shown), `"x-`) {
				t.Errorf("a schema has keywords of its own:\n%s\n%s", d.Input, d.Shown)
			}
			if _, err := argschema.Compile(d.Shown); err != nil {
				t.Fatal(err)
			}
			for _, property := range properties(d.Shown) {
				if property != "unknown" && !slices.Contains(properties(d.Input), property) {
					t.Errorf("models read of %s, which is not accepted", property)
				}
			}
			if strings.Contains(string(d.Shown), `"max`) || strings.Contains(string(d.Shown), `"min`) {
				t.Errorf("models read bounds: %s", d.Shown)
			}
		})
	}
}
