package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// What Read says fits, Validate accepts; what Validate accepts fits, but for
// the cases that say "left to Validate".
func TestReadSaysWhatFits(t *testing.T) {
	const fits, left, refused = "fits", "left to Validate", "refused"
	tests := []struct{ name, schema, args, want string }{
		{"any value", `true`, `[{"a":null}]`, fits},
		{"no value", `false`, `1`, refused},
		{"a type", `{"type":"string"}`, `"a"`, fits},
		{"another type", `{"type":"string"}`, `1`, refused},
		{"one of several types", `{"type":["null","boolean"]}`, `false`, fits},
		{"none of several types", `{"type":["null","boolean"]}`, `"false"`, refused},
		{"an integer", `{"type":"integer"}`, `-12`, fits},
		{"an integer with a fraction of zero", `{"type":"integer"}`, `12.00`, fits},
		{"a fraction for an integer", `{"type":"integer"}`, `12.01`, refused},
		{"a number or an integer", `{"type":["integer","number"]}`, `0.5`, fits},
		{"an integer with an exponent", `{"type":"integer"}`, `1e2`, left},
		{"an integer of twenty digits", `{"type":"integer"}`, `12345678901234567890`, left},
		{"any number of twenty digits", `{"type":"number"}`, `12345678901234567890`, fits},
		{"an integer that 64 bits would turn into a small one", `{"maximum":10}`, `18446744073709551617`, refused},
		{"a listed word", `{"enum":["a","bc",null]}`, `"bc"`, fits},
		{"a listed null", `{"enum":["a","bc",null]}`, `null`, fits},
		{"a word that is not listed", `{"enum":["a","bc",null]}`, `"b"`, refused},
		{"a listed word with an escape", `{"enum":["a"]}`, `"\u0061"`, left},
		{"a listed number written otherwise", `{"enum":[1,2.5]}`, `2.50`, fits},
		{"a number that is not listed", `{"enum":[1,2.5]}`, `2`, refused},
		{"one of sixteen numbers", `{"enum":` + ints(16) + `}`, `15`, fits},
		{"one of many numbers", `{"enum":` + ints(17) + `}`, `15`, left},
		{"a listed number of another type", `{"type":"string","enum":[1]}`, `1`, refused},
		{"a listed boolean", `{"enum":[true]}`, `true`, fits},
		{"the other boolean", `{"enum":[true]}`, `false`, refused},
		{"a constant", `{"const":"a"}`, `"a"`, fits},
		{"another value than the constant", `{"const":"a"}`, `"b"`, refused},
		{"a constant that is an object", `{"const":{"a":1}}`, `{"a":1}`, left},
		{"a long enough text", `{"minLength":2}`, `"éé"`, fits},
		{"a text of one character in two bytes", `{"minLength":2}`, `"é"`, refused},
		{"a text of one character in twelve bytes", `{"minLength":2}`, `"\ud83d\ude00"`, refused},
		{"a short text of many escapes", `{"maxLength":4}`, `"\n\u00e9\ud83d\ude00é"`, fits},
		{"a long text of many escapes", `{"maxLength":3}`, `"\n\u00e9\ud83d\ude00é"`, refused},
		{"a matching text", `{"pattern":"^[a-z]+$"}`, `"abc"`, fits},
		{"a text that does not match", `{"pattern":"^[a-z]+$"}`, `"Abc"`, refused},
		{"a matching text with an escape", `{"pattern":"^.$"}`, `"\n\u0041"`, refused},
		{"a matching text with an escape, left", `{"pattern":"b$"}`, `"\u0041b"`, left},
		{"the least number", `{"minimum":-3}`, `-3`, fits},
		{"below the least number", `{"minimum":-3}`, `-4`, refused},
		{"below it by a fraction", `{"minimum":-3}`, `-3.001`, refused},
		{"minus zero", `{"minimum":0}`, `-0`, fits},
		{"minus zero with a fraction", `{"exclusiveMaximum":0}`, `-0.0`, refused},
		{"an integer above a fraction", `{"minimum":0.1}`, `1`, fits},
		{"an integer below a fraction", `{"minimum":0.1}`, `0`, refused},
		{"a negative integer below a fraction", `{"maximum":-1.5}`, `-2`, fits},
		{"a negative integer above a fraction", `{"maximum":-1.5}`, `-1`, refused},
		{"the excluded number", `{"exclusiveMinimum":5}`, `5`, refused},
		{"just above it", `{"exclusiveMinimum":5}`, `5.0000000001`, fits},
		{"the integer above an excluded fraction", `{"exclusiveMinimum":5.5}`, `6`, fits},
		{"digits that a float would lose", `{"maximum":9007199254740992}`, `9007199254740993`, refused},
		{"a limit beyond 64 bits", `{"maximum":123456789012345678901234567890}`, `1`, left},
		{"a limit near 64 bits", `{"maximum":18446744073709551615}`, `999999999999999999`, fits},
		{"a multiple", `{"multipleOf":0.1}`, `0.3`, fits},
		{"no multiple", `{"multipleOf":0.1}`, `0.25`, refused},
		{"a multiple of an integer", `{"multipleOf":5}`, `-15`, fits},
		{"elements", `{"items":{"type":"null"}}`, `[null,null]`, fits},
		{"an element of another type", `{"items":{"type":"null"}}`, `[null,1]`, refused},
		{"too few elements", `{"minItems":2}`, `[1]`, refused},
		{"too many elements", `{"maxItems":1}`, `[1,2]`, refused},
		{"as many elements as there may be", `{"minItems":2,"maxItems":2}`, `[1,[2,3,4]]`, fits},
		{"elements that differ", `{"uniqueItems":true}`, `["a","1",1,true,null]`, fits},
		{"elements that are equal", `{"uniqueItems":true}`, `["a","b","a"]`, refused},
		{"elements that are equal and written in two ways", `{"uniqueItems":true}`, `["a","\u0061"]`, refused},
		{"elements that differ and might be written otherwise", `{"uniqueItems":true}`, `[1,1.5]`, left},
		{"equal elements of two arrays", `{"items":{"uniqueItems":true}}`, `[[1,2],[2,1]]`, fits},
		{"equal elements around an object", `{"uniqueItems":true}`, `["a",{"k":1},"a"]`, refused},
		{"many elements that differ", `{"uniqueItems":true}`, ints(100), left},
		{"all that is required", `{"required":["a"],"properties":{"a":true}}`, `{"b":1,"a":1}`, fits},
		{"not all that is required", `{"required":["a"],"properties":{"a":true}}`, `{"b":1}`, refused},
		{"a required name without a property", `{"required":["a"]}`, `{"a":1}`, left},
		{"an unknown name", `{"additionalProperties":false,"properties":{"a":true}}`, `{"b":1}`, refused},
		{"an unknown name that ends and begins like a known one", `{"additionalProperties":false,"properties":{"the_first_of_all_names":true}}`, `{"the_first_or_all_names":1}`, refused},
		{"an unknown name that repeats a letter of a known one", `{"additionalProperties":false,"properties":{"ab":true}}`, `{"abb":1}`, refused},
		{"names that no slot tells apart", `{"additionalProperties":false,"properties":{"ab":true,"abb":{"type":"null"}}}`, `{"abb":null,"ab":1}`, fits},
		{"values of free names", `{"additionalProperties":{"type":"null"},"properties":{"a":true}}`, `{"a":1,"b":null}`, fits},
		{"a value of a free name", `{"additionalProperties":{"type":"null"},"properties":{"a":true}}`, `{"a":1,"b":1}`, refused},
		{"a name with an escape", `{"additionalProperties":false,"properties":{"a":{"type":"null"}}}`, `{"\u0061":null}`, fits},
		{"too few properties", `{"minProperties":1}`, `{}`, refused},
		{"too many properties", `{"maxProperties":1}`, `{"a":1,"b":1}`, refused},
		{"as many properties as there may be", `{"maxProperties":1}`, `{"a":{"b":1,"c":2}}`, fits},
		{"an alternative", `{"anyOf":[{"type":"string","minLength":1},{"type":"null"}]}`, `null`, fits},
		{"the right type of alternative, wrong", `{"anyOf":[{"type":"string","minLength":1},{"type":"null"}]}`, `""`, refused},
		{"alternatives of one type", `{"anyOf":[{"minLength":1},{"type":"string"}]}`, `""`, left},
		{"two alternatives where there must be one", `{"oneOf":[{"type":"string"},{"minLength":1}]}`, `"a"`, refused},
		{"a name that only an alternative for others knows", `{"anyOf":[{"type":"object","additionalProperties":false},{"type":"string","properties":{"b":true}}]}`, `{"b":1}`, refused},
		{"one alternative of several", `{"oneOf":[{"type":"array","items":{"type":"integer"}},{"type":"integer","minimum":1}]}`, `[0]`, fits},
		{"the inside of an alternative for others", `{"anyOf":[{"type":"string","properties":{"a":{"type":"null"}}},{"type":"object"}]}`, `{"a":1}`, left},
		{"a reference", `{"$ref":"#/$defs/list"}`, `{"value":1,"next":{"value":2}}`, fits},
		{"behind a reference to itself", `{"$ref":"#/$defs/list"}`, `{"value":1,"next":{"value":"2"}}`, refused},
		{"a reference with more beside it", `{"$ref":"#/$defs/list","maxProperties":1}`, `{"value":1}`, left},
		{"one schema of allOf", `{"allOf":[{"type":"null"}],"description":"nothing"}`, `null`, fits},
		{"two schemas of allOf", `{"allOf":[{"type":"null"},{}]}`, `null`, left},
		{"no alternative of allOf", `{"allOf":[{"type":"null"},{"type":"string"}]}`, `null`, refused},
		{"a format, which is a hint", `{"type":"string","format":"email"}`, `"x"`, fits},
		{"annotations", `{"title":"a","description":"b","default":1,"examples":[1],"deprecated":true,"readOnly":true,"$comment":"c","x-hint":1}`, `2`, fits},
		{"a keyword without rules", `{"not":{"type":"null"}}`, `1`, left},
		{"another one", `{"patternProperties":{"^x":{"type":"null"}}}`, `{"x":null}`, left},
		{"a tuple", `{"prefixItems":[{"type":"null"}]}`, `[null]`, left},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, `{"type":"object","additionalProperties":false,"properties":{"v":`+tt.schema+`},"$defs":{
				"list":{"type":"object","required":["value"],"properties":{"value":{"type":"integer"},"next":{"$ref":"#/$defs/list"}}}}}`)
			args := json.RawMessage(`{"v":` + tt.args + `}`)
			got, err := s.Read(args)
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.want == fits; got != want {
				t.Errorf("got fits %v, want %v", got, want)
			}
			if err := s.Validate(args); (err == nil) != (tt.want != refused) {
				t.Errorf("the full validator says %v, want %s", err, tt.want)
			}
		})
	}
}

// ints is an array of n different numbers.
func ints(n int) string {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	text, _ := json.Marshal(list) // integers always marshal
	return string(text)
}

func TestReadRefusesWhatParseRefuses(t *testing.T) {
	s := compile(t, object(`"path":{"type":"string"}`))
	for _, args := range []string{``, `[]`, `{"path":1,"path":"a"}`, `{"Path":"a"}`, `{"path":"a"} x`, "{\"path\":\"\xff\"}"} {
		fits, err := s.Read(json.RawMessage(args))
		if fits || errcode.Of(err) != errcode.InvalidArguments {
			t.Errorf("%q: got %v, %v, want a refusal", args, fits, err)
		}
		if parse := s.Parse(json.RawMessage(args)); fmt.Sprint(parse) != fmt.Sprint(err) {
			t.Errorf("%q: Parse says %v, Read %v", args, parse, err)
		}
	}
}

// Older drafts say the same things otherwise.
func TestReadOfOlderDrafts(t *testing.T) {
	for _, tt := range []struct {
		name, draft, schema, args string
		fits, valid               bool
	}{
		{"a tuple", "07", `{"items":[{"type":"null"}]}`, `[null,1]`, false, true},
		{"a tuple and no more", "07", `{"items":[{"type":"null"}],"additionalItems":false}`, `[null,null]`, false, false},
		{"a list", "07", `{"items":{"type":"null"}}`, `[null,null]`, true, true},
		{"a list of others", "07", `{"items":{"type":"null"}}`, `[null,1]`, false, false},
		{"a reference hides what is beside it", "07", `{"$ref":"#/definitions/n","maximum":0}`, `1`, true, true},
		{"a format is a rule", "07", `{"format":"email"}`, `"x"`, false, false},
		{"an excluded limit", "04", `{"minimum":1,"exclusiveMinimum":true}`, `1`, false, false},
		{"above an excluded limit", "04", `{"minimum":1,"exclusiveMinimum":true}`, `2`, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, `{"$schema":"http://json-schema.org/draft-`+tt.draft+`/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"v":`+tt.schema+`}}`)
			agreed(t, s, `{"v":`+tt.args+`}`, tt.fits, tt.valid)
		})
	}
}

func agreed(t *testing.T, s *tool.Schema, args string, fits, valid bool) {
	t.Helper()
	if got, err := s.Read(json.RawMessage(args)); err != nil || got != fits {
		t.Errorf("got fits %v, %v, want %v", got, err, fits)
	}
	if err := s.Validate(json.RawMessage(args)); (err == nil) != valid {
		t.Errorf("the full validator says %v, want valid: %v", err, valid)
	}
}

// A property that stands behind the first 64 is known, and counted, like any
// other; only that it is there cannot be required by Rules.
func TestReadKnowsManyProperties(t *testing.T) {
	var properties []string
	for i := range 100 {
		properties = append(properties, fmt.Sprintf(`"p%03d":{"type":"integer"}`, i))
	}
	known := strings.Join(properties, ",")
	for _, tt := range []struct {
		name, schema, args string
		fits, valid        bool
	}{
		{"the last one", `{"type":"object","additionalProperties":false,"properties":{` + known + `}}`, `{"p099":1,"p000":2}`, true, true},
		{"the last one with another type", `{"type":"object","properties":{` + known + `}}`, `{"p099":"1"}`, false, false},
		{"one too many", `{"type":"object","additionalProperties":false,"properties":{` + known + `}}`, `{"p100":1}`, false, false},
		{"one of the first is required", `{"type":"object","required":["p063"],"properties":{` + known + `}}`, `{"p063":1}`, true, true},
		{"the last one is required", `{"type":"object","required":["p099"],"properties":{` + known + `}}`, `{"p099":1}`, false, true},
		{"the last one is missing", `{"type":"object","required":["p099"],"properties":{` + known + `}}`, `{"p000":1}`, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			agreed(t, compile(t, tt.schema), tt.args, tt.fits, tt.valid)
		})
	}
}

// What Validate refuses to check because it takes too many steps does not
// fit: the two have one verdict.
func TestReadIsBoundedAsValidateIs(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"v":{"type":"array","items":{"$ref":"#/$defs/a"}}},"$defs":{
		"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/c"},"c":{"type":"integer"}}}`)
	for _, n := range []int{1000, 1 << 18, 1 << 20} {
		args := json.RawMessage(`{"v":[` + strings.Repeat("1,", n) + `1]}`)
		fits, err := s.Read(args)
		if err != nil {
			t.Fatal(err)
		}
		if valid := s.Validate(args); fits != (valid == nil) {
			t.Errorf("%d elements: got fits %v, the full validator says %v", n, fits, valid)
		}
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	s := compile(t, `{"type":"object","required":["path"],"additionalProperties":false,"properties":{
		"path":{"type":"string","minLength":1,"maxLength":9,"pattern":"^[a-z./]+$"},"mode":{"enum":["r","w"]},
		"n":{"type":"integer","minimum":0,"maximum":10},"x":{"type":"number","multipleOf":0.5},
		"tags":{"type":"array","maxItems":4,"uniqueItems":true,"items":{"type":"string"}},"text":{"type":["string","null"],"maxLength":10}}}`)
	args := json.RawMessage(`{"path":"a/b.txt","mode":"r","n":3,"x":-1.5,"tags":["a","b"],"text":"a\nb\ud83d\ude00"}`)
	got := testing.AllocsPerRun(100, func() {
		if fits, err := s.Read(args); !fits || err != nil {
			t.Errorf("got %v, %v, want a fit", fits, err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
