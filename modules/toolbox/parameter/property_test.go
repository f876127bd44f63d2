package parameter_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

var flags = proptest.NewFlags(3000)

var scale = proptest.CaseSize{MaxChoices: 200, MinChoices: 20}

// Parse and the schema accept the same arguments, except for what a schema cannot
// express.
func TestPropertySchemaAgreesWithParse(t *testing.T) {
	var accepted, rejected, unspecified int
	flags.CheckProperty(t, scale, func(choices *proptest.Choices) error {
		spec := map[string]any{"name": "a"}
		quiet := describe(choices, spec, 2)
		if choices.Pick(3) == 2 {
			spec["required"] = false
		}
		text, _ := json.Marshal([]any{spec})
		set, problems := parameter.CompileSet(parameter.Options{}, specsOf(string(text)), nil)
		if problems != nil {
			return fmt.Errorf("%s: %v", text, problems)
		}
		schema, err := argschema.Compile(set.Schema())
		if err != nil {
			return fmt.Errorf("%s: schema %s: %v", text, set.Schema(), err)
		}
		for range 8 {
			args := []byte(`{"a":` + valueFor(choices, spec, 3) + `,"b":1}`)
			_, refusal := set.ParseArguments(args, nil, nil)
			invalid := schema.Validate(args)
			switch {
			case refusal == nil && invalid != nil:
				return fmt.Errorf("%s: args %s: accepted, but the schema returns %v", text, args, invalid)
			case refusal == nil:
				accepted++
			case invalid != nil:
				rejected++
			case !quiet && !isRangeError(refusal):
				return fmt.Errorf("%s: args %s: fits %s, but: %v", text, args, set.Schema(), refusal)
			default:
				unspecified++
			}
		}
		return nil
	})
	t.Logf("%d accepted, %d rejected, %d that schemas do not specify", accepted, rejected, unspecified)
	if least := flags.Cases / 4; accepted < least || rejected < least || unspecified < least/8 {
		t.Error("the generated cases lack variety")
	}
}

// isRangeError reports whether an error is about the range of int64 or float64.
func isRangeError(err error) bool {
	return strings.Contains(err.Error(), "64 bits") || strings.Contains(err.Error(), "float64")
}

var (
	someTexts   = []any{"", "x", "yy", "CY", "é", "a.b", "5", "it's"}
	someNumbers = []any{num("0"), num("1"), num("-1"), num("2"), num("7"), num("9007199254740993"), num("9223372036854775807")}
	someFloats  = []any{num("0.1"), num("1.5"), num("2"), num("-0.25"), num("1e21"), num("9007199254740993")}
	oddNumbers  = []string{"0", "1.0", "2e0", "-1", "15e-1", "0.1", "0.10000000000000001", "9007199254740992", "9007199254740993", "9223372036854775808", "1e400", "1e21", "-0.25", "7"}
)

func num(text string) json.Number { return json.Number(text) }

// describe adds a type and constraints to spec, and reports whether a schema cannot
// express some of them.
func describe(t *proptest.Choices, spec map[string]any, depth int) (quiet bool) {
	kinds := []string{"string", "integer", "float", "boolean", "map", "array"}
	kind := kinds[t.Pick(len(kinds)-1+min(depth, 1))]
	spec["type"] = kind
	switch kind {
	case "string":
		return describeText(t, spec)
	case "integer":
		return describeNumber(t, spec, someNumbers)
	case "float":
		return describeNumber(t, spec, someFloats)
	case "boolean":
		if t.Pick(3) == 0 {
			spec["allowedValues"] = []any{proptest.PickFrom[any](t, true, "false")}
		}
	case "map":
		if t.Pick(2) == 0 {
			spec["valueType"] = proptest.PickFrom(t, "string", "integer", "float", "boolean")
		} else if t.Pick(3) == 0 {
			spec["allowedValues"] = []any{map[string]any{"k": 1}, map[string]any{}}
		}
	case "array":
		items := map[string]any{}
		quiet = describe(t, items, depth-1)
		spec["items"] = items
		if t.Pick(4) == 0 {
			spec["allowedValues"] = []any{json.RawMessage(`[` + plain(t, items, 3, true) + `]`), []any{}}
		}
	}
	return quiet
}

func describeText(t *proptest.Choices, spec map[string]any) (quiet bool) {
	switch t.Pick(6) {
	case 0:
		spec["allowedValues"] = []any{"x", "a.b", 5}
	case 1:
		spec["allowedValues"] = []any{proptest.PickFrom(t, "^[A-Z]{2}$", "/x|yy/", "/[^x]*/", "^x|5$", "/é?/")}
	case 2:
		spec["allowedValues"] = []any{"/x+/", "CY"}
		quiet = true
	}
	if t.Pick(5) == 0 {
		spec["excludedValues"] = []any{proptest.PickFrom(t, "x", "/^$/", ".")}
		quiet = true
	}
	if t.Pick(3) == 0 {
		spec["escape"] = proptest.PickFrom(t, "single-quotes", "square-brackets")
	}
	return quiet
}

func describeNumber(t *proptest.Choices, spec map[string]any, some []any) (quiet bool) {
	low, high := t.Pick(2*len(some)), t.Pick(2*len(some))
	if low < len(some) {
		spec["minValue"] = some[low]
	}
	if high < len(some) && (low >= len(some) || compare(some[low], some[high]) <= 0) {
		spec["maxValue"] = some[high]
	}
	if t.Pick(4) == 0 {
		spec["allowedValues"] = []any{proptest.PickFrom(t, some...), proptest.PickFrom(t, some...)}
	}
	if t.Pick(6) == 0 {
		spec["excludedValues"] = []any{proptest.PickFrom(t, some...)}
		quiet = true
	}
	return quiet
}

func compare(a, b any) int {
	x, _ := new(big.Rat).SetString(string(a.(json.Number)))
	y, _ := new(big.Rat).SetString(string(b.(json.Number)))
	return x.Cmp(y)
}

// valueFor returns a value that spec most likely accepts.
func valueFor(t *proptest.Choices, spec map[string]any, depth int) string {
	if t.Pick(8) == 7 || depth == 0 {
		return proptest.PickFrom(t, "null", "true", `"x"`, "5", "0.5", `[]`, `{}`, `[null]`, `{"k":null}`)
	}
	if allowed, ok := spec["allowedValues"].([]any); ok && t.Pick(3) > 0 {
		text, _ := json.Marshal(proptest.PickFrom(t, allowed...))
		return string(text)
	}
	return plain(t, spec, depth, false)
}

// plain returns a value of spec's type. Unless proper is set, its elements may be of
// any type.
func plain(t *proptest.Choices, spec map[string]any, depth int, proper bool) string {
	if number := spec["type"] == "integer" || spec["type"] == "float"; number && !proper && t.Pick(3) == 0 {
		return proptest.PickFrom(t, oddNumbers...)
	}
	switch spec["type"] {
	case "string":
		text, _ := json.Marshal(proptest.PickFrom(t, someTexts...))
		return string(text)
	case "integer":
		return string(proptest.PickFrom(t, someNumbers...).(json.Number))
	case "float":
		return proptest.PickFrom(t, oddNumbers[:9]...)
	case "boolean":
		return proptest.PickFrom(t, "true", "false")
	case "map":
		if kind, ok := spec["valueType"]; ok {
			return `{"k":` + plain(t, map[string]any{"type": kind}, depth-1, proper) + `}`
		}
		if !proper && t.Pick(4) == 0 {
			return `{"k":[null,"x"],"l":1e400}`
		}
		return proptest.PickFrom(t, `{}`, `{"k":1.0}`, `{"k":[null,"x"]}`)
	}
	list := make([]string, t.Pick(3))
	for i := range list {
		list[i] = proptest.PickFrom(t, oddNumbers...)
		if items := spec["items"].(map[string]any); proper || t.Pick(6) > 0 {
			list[i] = plain(t, items, depth-1, proper)
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

// An integer keeps its exact value in any notation, or is rejected.
func TestPropertyIntegersAreExact(t *testing.T) {
	set := compile(t, `[{"type":"integer"}]`, `[{"name":"t","type":"integer","valueFromParam":"a"}]`)
	template, err := set.StatementTemplate(`{{.t}}`)
	if err != nil {
		t.Fatal(err)
	}
	flags.CheckProperty(t, scale, func(choices *proptest.Choices) error {
		n := new(big.Int)
		for range choices.Pick(9) + 1 {
			n.Add(n.Lsh(n, 8), big.NewInt(int64(choices.Pick(256))))
		}
		if choices.Pick(2) == 1 {
			n.Neg(n)
		}
		written := proptest.PickFrom(choices, n.String(), n.String()+".0", n.String()+"e0", new(big.Int).Mul(n, big.NewInt(100)).String()+"e-2")
		values, err := set.ParseArguments([]byte(`{"a":`+written+`}`), nil, nil)
		if !n.IsInt64() {
			if errcode.CodeOf(err) != errcode.InvalidArguments {
				return fmt.Errorf("%s: got %v, %v", written, values, err)
			}
			return nil
		}
		if err != nil || values.BindValues()[0] != n.Int64() || !strings.Contains(string(values.JSON()), strconv.FormatInt(n.Int64(), 10)) {
			return fmt.Errorf("%s: got %v, %v", written, values, err)
		}
		if text, err := template.RenderText(values); text != n.String() || err != nil {
			return fmt.Errorf("%s: the template returns %s, %v", written, text, err)
		}
		return nil
	})
}
