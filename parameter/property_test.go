package parameter_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/tool"
)

var (
	seedFlag  = flag.Int64("seed", 0, "seed of the properties; 0 takes the clock")
	casesFlag = flag.Int("cases", 3000, "cases of each property")
)

// check runs a property over random choices.
func check(t *testing.T, property func(choices tape) string) {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	p := gopter.DefaultTestParametersWithSeed(seed)
	p.MinSuccessfulTests = *casesFlag
	p.MinSize, p.MaxSize = 20, 200
	p.MaxShrinkCount = 2000
	result := prop.ForAll(func(choices []uint8) string { return property(choices) }, gen.SliceOf(gen.UInt8())).Check(p)
	if !result.Passed() {
		t.Fatalf("%s: %v %v\nagain: go test ./parameter -run '^%s$' -seed %d", result.Status, result.Labels, result.Error, t.Name(), seed)
	}
}

// tape is a list of random choices still to be made.
type tape []uint8

// pick chooses one of n; an empty tape chooses the first.
func (t *tape) pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	choice := int((*t)[0]) % n
	*t = (*t)[1:]
	return choice
}

func among[T any](t *tape, list ...T) T { return list[t.pick(len(list))] }

// What Given takes, the schema takes; and what the schema takes, Given takes,
// but for what no schema says.
func TestPropertySchemaAgreesWithGiven(t *testing.T) {
	var taken, refused, silent int
	check(t, func(choices tape) string {
		spec := map[string]any{"name": "a"}
		quiet := describe(&choices, spec, 2)
		if choices.pick(3) == 2 {
			spec["required"] = false
		}
		text, _ := json.Marshal([]any{spec})
		set, problems := parameter.Compile(parameter.Options{}, specsOf(string(text)), nil)
		if problems != nil {
			return fmt.Sprintf("%s: %v", text, problems)
		}
		schema, err := tool.Compile(set.Schema())
		if err != nil {
			return fmt.Sprintf("%s: schema %s: %v", text, set.Schema(), err)
		}
		for range 8 {
			args := []byte(`{"a":` + valueFor(&choices, spec, 3) + `,"b":1}`)
			_, refusal := set.Given(args, nil, nil)
			invalid := schema.Validate(args)
			switch {
			case refusal == nil && invalid != nil:
				return fmt.Sprintf("%s: args %s: taken, but the schema says %v", text, args, invalid)
			case refusal == nil:
				taken++
			case invalid != nil:
				refused++
			case !quiet && !beyond(refusal):
				return fmt.Sprintf("%s: args %s: fits %s, but: %v", text, args, set.Schema(), refusal)
			default:
				silent++
			}
		}
		return ""
	})
	t.Logf("%d taken, %d refused, %d where schemas are silent", taken, refused, silent)
	if least := *casesFlag / 4; taken < least || refused < least || silent < least/8 {
		t.Error("the cases are too much alike")
	}
}

// beyond says whether a refusal is about the limits of int64 and float64.
func beyond(err error) bool {
	return strings.Contains(err.Error(), "64 bits") || strings.Contains(err.Error(), "float64")
}

var (
	someTexts   = []any{"", "x", "yy", "CY", "é", "a.b", "5", "it's"}
	someNumbers = []any{num("0"), num("1"), num("-1"), num("2"), num("7"), num("9007199254740993"), num("9223372036854775807")}
	someFloats  = []any{num("0.1"), num("1.5"), num("2"), num("-0.25"), num("1e21"), num("9007199254740993")}
	oddNumbers  = []string{"0", "1.0", "2e0", "-1", "15e-1", "0.1", "0.10000000000000001", "9007199254740992", "9007199254740993", "9223372036854775808", "1e400", "1e21", "-0.25", "7"}
)

func num(text string) json.Number { return json.Number(text) }

// describe adds a type and constraints to spec, and says whether they are some
// that schemas are silent on.
func describe(t *tape, spec map[string]any, depth int) (quiet bool) {
	kinds := []string{"string", "integer", "float", "boolean", "map", "array"}
	kind := kinds[t.pick(len(kinds)-1+min(depth, 1))]
	spec["type"] = kind
	switch kind {
	case "string":
		return describeText(t, spec)
	case "integer":
		return describeNumber(t, spec, someNumbers)
	case "float":
		return describeNumber(t, spec, someFloats)
	case "boolean":
		if t.pick(3) == 0 {
			spec["allowedValues"] = []any{among[any](t, true, "false")}
		}
	case "map":
		if t.pick(2) == 0 {
			spec["valueType"] = among(t, "string", "integer", "float", "boolean")
		} else if t.pick(3) == 0 {
			spec["allowedValues"] = []any{map[string]any{"k": 1}, map[string]any{}}
		}
	case "array":
		items := map[string]any{}
		quiet = describe(t, items, depth-1)
		spec["items"] = items
		if t.pick(4) == 0 {
			spec["allowedValues"] = []any{json.RawMessage(`[` + plain(t, items, 3, true) + `]`), []any{}}
		}
	}
	return quiet
}

func describeText(t *tape, spec map[string]any) (quiet bool) {
	switch t.pick(6) {
	case 0:
		spec["allowedValues"] = []any{"x", "a.b", 5}
	case 1:
		spec["allowedValues"] = []any{among(t, "^[A-Z]{2}$", "/x|yy/", "/[^x]*/", "^x|5$", "/é?/")}
	case 2:
		spec["allowedValues"] = []any{"/x+/", "CY"}
		quiet = true
	}
	if t.pick(5) == 0 {
		spec["excludedValues"] = []any{among(t, "x", "/^$/", ".")}
		quiet = true
	}
	if t.pick(3) == 0 {
		spec["escape"] = among(t, "single-quotes", "square-brackets")
	}
	return quiet
}

func describeNumber(t *tape, spec map[string]any, some []any) (quiet bool) {
	low, high := t.pick(2*len(some)), t.pick(2*len(some))
	if low < len(some) {
		spec["minValue"] = some[low]
	}
	if high < len(some) && (low >= len(some) || compare(some[low], some[high]) <= 0) {
		spec["maxValue"] = some[high]
	}
	if t.pick(4) == 0 {
		spec["allowedValues"] = []any{among(t, some...), among(t, some...)}
	}
	if t.pick(6) == 0 {
		spec["excludedValues"] = []any{among(t, some...)}
		quiet = true
	}
	return quiet
}

func compare(a, b any) int {
	x, _ := new(big.Rat).SetString(string(a.(json.Number)))
	y, _ := new(big.Rat).SetString(string(b.(json.Number)))
	return x.Cmp(y)
}

// valueFor writes a value that spec most likely takes.
func valueFor(t *tape, spec map[string]any, depth int) string {
	if t.pick(8) == 7 || depth == 0 {
		return among(t, "null", "true", `"x"`, "5", "0.5", `[]`, `{}`, `[null]`, `{"k":null}`)
	}
	if allowed, ok := spec["allowedValues"].([]any); ok && t.pick(3) > 0 {
		text, _ := json.Marshal(among(t, allowed...))
		return string(text)
	}
	return plain(t, spec, depth, false)
}

// plain writes a value of spec's type; unless proper is set, what is inside it
// may be anything.
func plain(t *tape, spec map[string]any, depth int, proper bool) string {
	if number := spec["type"] == "integer" || spec["type"] == "float"; number && !proper && t.pick(3) == 0 {
		return among(t, oddNumbers...)
	}
	switch spec["type"] {
	case "string":
		text, _ := json.Marshal(among(t, someTexts...))
		return string(text)
	case "integer":
		return string(among(t, someNumbers...).(json.Number))
	case "float":
		return among(t, oddNumbers[:9]...)
	case "boolean":
		return among(t, "true", "false")
	case "map":
		if kind, ok := spec["valueType"]; ok {
			return `{"k":` + plain(t, map[string]any{"type": kind}, depth-1, proper) + `}`
		}
		if !proper && t.pick(4) == 0 {
			return `{"k":[null,"x"],"l":1e400}`
		}
		return among(t, `{}`, `{"k":1.0}`, `{"k":[null,"x"]}`)
	}
	list := make([]string, t.pick(3))
	for i := range list {
		list[i] = among(t, oddNumbers...)
		if items := spec["items"].(map[string]any); proper || t.pick(6) > 0 {
			list[i] = plain(t, items, depth-1, proper)
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

// An integer arrives as it was sent, however it was written, or not at all.
func TestPropertyIntegersAreExact(t *testing.T) {
	set := compile(t, `[{"type":"integer"}]`, `[{"name":"t","type":"integer","valueFromParam":"a"}]`)
	template, err := set.Template(`{{.t}}`)
	if err != nil {
		t.Fatal(err)
	}
	check(t, func(choices tape) string {
		n := new(big.Int)
		for range choices.pick(9) + 1 {
			n.Add(n.Lsh(n, 8), big.NewInt(int64(choices.pick(256))))
		}
		if choices.pick(2) == 1 {
			n.Neg(n)
		}
		written := among(&choices, n.String(), n.String()+".0", n.String()+"e0", new(big.Int).Mul(n, big.NewInt(100)).String()+"e-2")
		values, err := set.Given([]byte(`{"a":`+written+`}`), nil, nil)
		if !n.IsInt64() {
			if errcode.Of(err) != errcode.InvalidArguments {
				return fmt.Sprintf("%s: got %v, %v", written, values, err)
			}
			return ""
		}
		if err != nil || values.Bind()[0] != n.Int64() || !strings.Contains(string(values.JSON()), strconv.FormatInt(n.Int64(), 10)) {
			return fmt.Sprintf("%s: got %v, %v", written, values, err)
		}
		if text, err := template.Text(values); text != n.String() || err != nil {
			return fmt.Sprintf("%s: the template gives %s, %v", written, text, err)
		}
		return ""
	})
}
