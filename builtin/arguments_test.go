package builtin

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/tool"
)

// The gate's one walk over the arguments knows the schemas of all tools made
// here: it sees that each example fits, and has the verdict of the full
// validator on whatever a model might write instead.
func TestTheOneWalkKnowsEverySchema(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for name, tl := range everyTool(t) {
		t.Run(name, func(t *testing.T) {
			d := tl.Definition()
			s, err := tool.Compile(d.Input)
			if err != nil {
				t.Fatal(err)
			}
			example := firstExample(t, d.Description)
			if fits, err := s.Read(example); err != nil || !fits {
				t.Errorf("%s: got %v, %v, want a fit", example, fits, err)
			}
			for range 300 {
				oneVerdict(t, s, altered(random, example, properties(d.Input)), seed)
			}
		})
	}
}

// firstExample gives the example's arguments; words may follow them.
func firstExample(t *testing.T, description string) (args json.RawMessage) {
	t.Helper()
	_, example, _ := strings.Cut(description, "Example: ")
	if err := json.NewDecoder(strings.NewReader(example)).Decode(&args); err != nil {
		t.Fatalf("%s: %v", example, err)
	}
	return args
}

func oneVerdict(t *testing.T, s *tool.Schema, args json.RawMessage, seed uint64) {
	t.Helper()
	fits, err := s.Read(args)
	if err != nil {
		return // refused before any schema is looked at
	}
	if valid := s.Validate(args); fits != (valid == nil) {
		t.Errorf("%s: got fits %v, the full validator says %v; seed %d", args, fits, valid, seed)
	}
}

func properties(schema json.RawMessage) (names []string) {
	var s struct{ Properties obj }
	_ = json.Unmarshal(schema, &s) // it compiled
	for name := range s.Properties {
		names = append(names, name)
	}
	return append(names, "unknown")
}

// altered gives an example with some properties taken away, added or changed.
func altered(random *rand.Rand, example json.RawMessage, names []string) json.RawMessage {
	var args obj
	_ = json.Unmarshal(example, &args) // another test looks at it
	for range 1 + random.IntN(3) {
		name := names[random.IntN(len(names))]
		if random.IntN(4) == 0 {
			delete(args, name)
			continue
		}
		args[name] = oddValues[random.IntN(len(oddValues))]
	}
	text, _ := json.Marshal(args) // it was decoded
	return text
}

var oddValues = []any{
	nil, true, false, 0, 1, -1, 0.5, 7, 1000, 1_000_001, 1 << 40, "", "a", "a.txt", "https://example.com/", "http://x", "GET", "base64", "*",
	strings.Repeat("é", 300), strings.Repeat("x", 70_000), []any{}, []any{"a"}, []any{1}, []any{"a", "a"}, []any{[]any{}}, make([]string, 300),
	obj{}, obj{"a": "b"}, obj{"a": 1}, obj{"agentId": "a", "role": "b"}, []any{obj{"agentId": "a", "role": "b"}}, []any{obj{"agentId": "a"}},
	obj{"objective": "a", "constraints": []any{}, "inputs": "b", "outputs": []any{"c"}, "completion_criteria": "d"},
	obj{"objective": "a", "collaborators": []any{obj{"agentId": "a", "role": "b", "more": 1}}},
}
