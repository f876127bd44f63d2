package argschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
)

// Validate accepts what Read reports as valid. Read reports as valid what Validate accepts,
// except in the cases "left to Validate".
func TestSchema_Read(t *testing.T) {
	const valid, left, invalid = "valid", "left to Validate", "invalid"
	tests := []struct{ name, schema, args, want string }{
		{"any value", `true`, `[{"a":null}]`, valid},
		{"no value", `false`, `1`, invalid},
		{"type", `{"type":"string"}`, `"a"`, valid},
		{"another type", `{"type":"string"}`, `1`, invalid},
		{"one of several types", `{"type":["null","boolean"]}`, `false`, valid},
		{"none of several types", `{"type":["null","boolean"]}`, `"false"`, invalid},
		{"integer", `{"type":"integer"}`, `-12`, valid},
		{"integer with a fraction of zero", `{"type":"integer"}`, `12.00`, valid},
		{"fraction for an integer", `{"type":"integer"}`, `12.01`, invalid},
		{"number or an integer", `{"type":["integer","number"]}`, `0.5`, valid},
		{"integer with an exponent", `{"type":"integer"}`, `1e2`, left},
		{"integer of twenty digits", `{"type":"integer"}`, `12345678901234567890`, left},
		{"any number of twenty digits", `{"type":"number"}`, `12345678901234567890`, valid},
		{"integer that 64 bits would turn into a small one", `{"maximum":10}`, `18446744073709551617`, invalid},
		{"listed word", `{"enum":["a","bc",null]}`, `"bc"`, valid},
		{"listed null", `{"enum":["a","bc",null]}`, `null`, valid},
		{"word that is not listed", `{"enum":["a","bc",null]}`, `"b"`, invalid},
		{"listed word with an escape", `{"enum":["a"]}`, `"\u0061"`, left},
		{"listed number written otherwise", `{"enum":[1,2.5]}`, `2.50`, valid},
		{"number that is not listed", `{"enum":[1,2.5]}`, `2`, invalid},
		{"one of sixteen numbers", `{"enum":` + intArray(16) + `}`, `15`, valid},
		{"one of many numbers", `{"enum":` + intArray(17) + `}`, `15`, left},
		{"listed number of another type", `{"type":"string","enum":[1]}`, `1`, invalid},
		{"listed boolean", `{"enum":[true]}`, `true`, valid},
		{"other boolean", `{"enum":[true]}`, `false`, invalid},
		{"constant", `{"const":"a"}`, `"a"`, valid},
		{"another value than the constant", `{"const":"a"}`, `"b"`, invalid},
		{"constant that is an object", `{"const":{"a":1}}`, `{"a":1}`, left},
		{"long enough text", `{"minLength":2}`, `"éé"`, valid},
		{"text of one character in two bytes", `{"minLength":2}`, `"é"`, invalid},
		{"text of one character in twelve bytes", `{"minLength":2}`, `"\ud83d\ude00"`, invalid},
		{"short text of many escapes", `{"maxLength":4}`, `"\n\u00e9\ud83d\ude00é"`, valid},
		{"long text of many escapes", `{"maxLength":3}`, `"\n\u00e9\ud83d\ude00é"`, invalid},
		{"matching text", `{"pattern":"^[a-z]+$"}`, `"abc"`, valid},
		{"text that does not match", `{"pattern":"^[a-z]+$"}`, `"Abc"`, invalid},
		{"matching text with an escape", `{"pattern":"^.$"}`, `"\n\u0041"`, invalid},
		{"matching text with an escape, left", `{"pattern":"b$"}`, `"\u0041b"`, left},
		{"least number", `{"minimum":-3}`, `-3`, valid},
		{"below the least number", `{"minimum":-3}`, `-4`, invalid},
		{"below it by a fraction", `{"minimum":-3}`, `-3.001`, invalid},
		{"minus zero", `{"minimum":0}`, `-0`, valid},
		{"minus zero with a fraction", `{"exclusiveMaximum":0}`, `-0.0`, invalid},
		{"integer above a fraction", `{"minimum":0.1}`, `1`, valid},
		{"integer below a fraction", `{"minimum":0.1}`, `0`, invalid},
		{"negative integer below a fraction", `{"maximum":-1.5}`, `-2`, valid},
		{"negative integer above a fraction", `{"maximum":-1.5}`, `-1`, invalid},
		{"excluded number", `{"exclusiveMinimum":5}`, `5`, invalid},
		{"just above it", `{"exclusiveMinimum":5}`, `5.0000000001`, valid},
		{"integer above an excluded fraction", `{"exclusiveMinimum":5.5}`, `6`, valid},
		{"digits that a float would lose", `{"maximum":9007199254740992}`, `9007199254740993`, invalid},
		{"limit beyond 64 bits", `{"maximum":123456789012345678901234567890}`, `1`, left},
		{"limit near 64 bits", `{"maximum":18446744073709551615}`, `999999999999999999`, valid},
		{"multiple", `{"multipleOf":0.1}`, `0.3`, valid},
		{"no multiple", `{"multipleOf":0.1}`, `0.25`, invalid},
		{"multiple of an integer", `{"multipleOf":5}`, `-15`, valid},
		{"elements", `{"items":{"type":"null"}}`, `[null,null]`, valid},
		{"element of another type", `{"items":{"type":"null"}}`, `[null,1]`, invalid},
		{"too few elements", `{"minItems":2}`, `[1]`, invalid},
		{"too many elements", `{"maxItems":1}`, `[1,2]`, invalid},
		{"as many elements as there may be", `{"minItems":2,"maxItems":2}`, `[1,[2,3,4]]`, valid},
		{"elements that differ", `{"uniqueItems":true}`, `["a","1",1,true,null]`, valid},
		{"elements that are equal", `{"uniqueItems":true}`, `["a","b","a"]`, invalid},
		{"elements that are equal and written in two ways", `{"uniqueItems":true}`, `["a","\u0061"]`, invalid},
		{"elements that differ and might be written otherwise", `{"uniqueItems":true}`, `[1,1.5]`, left},
		{"equal elements of two arrays", `{"items":{"uniqueItems":true}}`, `[[1,2],[2,1]]`, valid},
		{"equal elements around an object", `{"uniqueItems":true}`, `["a",{"k":1},"a"]`, invalid},
		{"many elements that differ", `{"uniqueItems":true}`, intArray(100), left},
		{"all that is required", `{"required":["a"],"properties":{"a":true}}`, `{"b":1,"a":1}`, valid},
		{"not all that is required", `{"required":["a"],"properties":{"a":true}}`, `{"b":1}`, invalid},
		{"required name without a property", `{"required":["a"]}`, `{"a":1}`, left},
		{"unknown name", `{"additionalProperties":false,"properties":{"a":true}}`, `{"b":1}`, invalid},
		{"unknown name that ends and begins like a known one", `{"additionalProperties":false,"properties":{"the_first_of_all_names":true}}`, `{"the_first_or_all_names":1}`, invalid},
		{"unknown name that repeats a letter of a known one", `{"additionalProperties":false,"properties":{"ab":true}}`, `{"abb":1}`, invalid},
		{"names that no slot tells apart", `{"additionalProperties":false,"properties":{"ab":true,"abb":{"type":"null"}}}`, `{"abb":null,"ab":1}`, valid},
		{"values of free names", `{"additionalProperties":{"type":"null"},"properties":{"a":true}}`, `{"a":1,"b":null}`, valid},
		{"value of a free name", `{"additionalProperties":{"type":"null"},"properties":{"a":true}}`, `{"a":1,"b":1}`, invalid},
		{"name with an escape", `{"additionalProperties":false,"properties":{"a":{"type":"null"}}}`, `{"\u0061":null}`, valid},
		{"too few properties", `{"minProperties":1}`, `{}`, invalid},
		{"too many properties", `{"maxProperties":1}`, `{"a":1,"b":1}`, invalid},
		{"as many properties as there may be", `{"maxProperties":1}`, `{"a":{"b":1,"c":2}}`, valid},
		{"alternative", `{"anyOf":[{"type":"string","minLength":1},{"type":"null"}]}`, `null`, valid},
		{"right type of alternative, wrong", `{"anyOf":[{"type":"string","minLength":1},{"type":"null"}]}`, `""`, invalid},
		{"alternatives of one type", `{"anyOf":[{"minLength":1},{"type":"string"}]}`, `""`, left},
		{"two alternatives where there must be one", `{"oneOf":[{"type":"string"},{"minLength":1}]}`, `"a"`, invalid},
		{"name that only an alternative for others knows", `{"anyOf":[{"type":"object","additionalProperties":false},{"type":"string","properties":{"b":true}}]}`, `{"b":1}`, invalid},
		{"one alternative of several", `{"oneOf":[{"type":"array","items":{"type":"integer"}},{"type":"integer","minimum":1}]}`, `[0]`, valid},
		{"inside of an alternative for others", `{"anyOf":[{"type":"string","properties":{"a":{"type":"null"}}},{"type":"object"}]}`, `{"a":1}`, left},
		{"reference", `{"$ref":"#/$defs/list"}`, `{"value":1,"next":{"value":2}}`, valid},
		{"behind a reference to itself", `{"$ref":"#/$defs/list"}`, `{"value":1,"next":{"value":"2"}}`, invalid},
		{"reference with other keywords", `{"$ref":"#/$defs/list","maxProperties":1}`, `{"value":1}`, left},
		{"one schema of allOf", `{"allOf":[{"type":"null"}],"description":"nothing"}`, `null`, valid},
		{"two schemas of allOf", `{"allOf":[{"type":"null"},{}]}`, `null`, left},
		{"no alternative of allOf", `{"allOf":[{"type":"null"},{"type":"string"}]}`, `null`, invalid},
		{"format, which is a hint", `{"type":"string","format":"email"}`, `"x"`, valid},
		{"annotations", `{"title":"a","description":"b","default":1,"examples":[1],"deprecated":true,"readOnly":true,"$comment":"c","x-hint":1}`, `2`, valid},
		{"keyword without rules", `{"not":{"type":"null"}}`, `1`, left},
		{"another one", `{"patternProperties":{"^x":{"type":"null"}}}`, `{"x":null}`, left},
		{"tuple", `{"prefixItems":[{"type":"null"}]}`, `[null]`, left},
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
			if want := tt.want == valid; got != want {
				t.Errorf("got %v from Read, want %v", got, want)
			}
			if err := s.Validate(args); (err == nil) != (tt.want != invalid) {
				t.Errorf("got %v from Validate, want %s", err, tt.want)
			}
		})
	}
}

// intArray returns a JSON array of n different numbers.
func intArray(n int) string {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	text, _ := json.Marshal(list) // integers always marshal
	return string(text)
}

func TestSchema_ReadRejectsWhatParseRejects(t *testing.T) {
	s := compile(t, object(`"path":{"type":"string"}`))
	for _, args := range []string{``, `[]`, `{"path":1,"path":"a"}`, `{"Path":"a"}`, `{"path":"a"} x`, "{\"path\":\"\xff\"}"} {
		fits, err := s.Read(json.RawMessage(args))
		if fits || errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%q: got %v, %v, want an error", args, fits, err)
		}
		if parse := s.Parse(json.RawMessage(args)); fmt.Sprint(parse) != fmt.Sprint(err) {
			t.Errorf("%q: got %v from Parse, %v from Read", args, parse, err)
		}
	}
}

func TestSchema_ReadOfOlderDrafts(t *testing.T) {
	for _, tt := range []struct {
		name, draft, schema, args string
		fits, valid               bool
	}{
		{"tuple", "07", `{"items":[{"type":"null"}]}`, `[null,1]`, false, true},
		{"tuple and no more", "07", `{"items":[{"type":"null"}],"additionalItems":false}`, `[null,null]`, false, false},
		{"list", "07", `{"items":{"type":"null"}}`, `[null,null]`, true, true},
		{"list of others", "07", `{"items":{"type":"null"}}`, `[null,1]`, false, false},
		{"reference overrides other keywords", "07", `{"$ref":"#/definitions/n","maximum":0}`, `1`, true, true},
		{"format is an assertion", "07", `{"format":"email"}`, `"x"`, false, false},
		{"excluded limit", "04", `{"minimum":1,"exclusiveMinimum":true}`, `1`, false, false},
		{"above an excluded limit", "04", `{"minimum":1,"exclusiveMinimum":true}`, `2`, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, `{"$schema":"http://json-schema.org/draft-`+tt.draft+`/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"v":`+tt.schema+`}}`)
			wantVerdicts(t, s, `{"v":`+tt.args+`}`, tt.fits, tt.valid)
		})
	}
}

func wantVerdicts(t *testing.T, s *argschema.Schema, args string, fits, valid bool) {
	t.Helper()
	if got, err := s.Read(json.RawMessage(args)); err != nil || got != fits {
		t.Errorf("got %v, %v from Read, want %v", got, err, fits)
	}
	if err := s.Validate(json.RawMessage(args)); (err == nil) != valid {
		t.Errorf("got %v from Validate, want valid: %v", err, valid)
	}
}

// A property after the first 64 is known and counted like the others, but a ruleSet cannot require
// it.
func TestSchema_ReadManyProperties(t *testing.T) {
	var properties []string
	for i := range 100 {
		properties = append(properties, fmt.Sprintf(`"p%03d":{"type":"integer"}`, i))
	}
	known := strings.Join(properties, ",")
	for _, tt := range []struct {
		name, schema, args string
		fits, valid        bool
	}{
		{"last one", `{"type":"object","additionalProperties":false,"properties":{` + known + `}}`, `{"p099":1,"p000":2}`, true, true},
		{"last one with another type", `{"type":"object","properties":{` + known + `}}`, `{"p099":"1"}`, false, false},
		{"one too many", `{"type":"object","additionalProperties":false,"properties":{` + known + `}}`, `{"p100":1}`, false, false},
		{"one of the first is required", `{"type":"object","required":["p063"],"properties":{` + known + `}}`, `{"p063":1}`, true, true},
		{"last one is required", `{"type":"object","required":["p099"],"properties":{` + known + `}}`, `{"p099":1}`, false, true},
		{"last one is missing", `{"type":"object","required":["p099"],"properties":{` + known + `}}`, `{"p000":1}`, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantVerdicts(t, compile(t, tt.schema), tt.args, tt.fits, tt.valid)
		})
	}
}

// Read does not accept what Validate rejects because it would take too many steps.
func TestSchema_ReadIsBounded(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"v":{"type":"array","items":{"$ref":"#/$defs/a"}}},"$defs":{
		"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/c"},"c":{"type":"integer"}}}`)
	for _, n := range []int{1000, 1 << 18, 1 << 20} {
		args := json.RawMessage(`{"v":[` + strings.Repeat("1,", n) + `1]}`)
		fits, err := s.Read(args)
		if err != nil {
			t.Fatal(err)
		}
		if valid := s.Validate(args); fits != (valid == nil) {
			t.Errorf("%d elements: got %v from Read, %v from Validate", n, fits, valid)
		}
	}
}

func TestSchema_ReadDoesNotAllocate(t *testing.T) {
	s := compile(t, `{"type":"object","required":["path"],"additionalProperties":false,"properties":{
		"path":{"type":"string","minLength":1,"maxLength":9,"pattern":"^[a-z./]+$"},"mode":{"enum":["r","w"]},
		"n":{"type":"integer","minimum":0,"maximum":10},"x":{"type":"number","multipleOf":0.5},
		"tags":{"type":"array","maxItems":4,"uniqueItems":true,"items":{"type":"string"}},"text":{"type":["string","null"],"maxLength":10}}}`)
	args := json.RawMessage(`{"path":"a/b.txt","mode":"r","n":3,"x":-1.5,"tags":["a","b"],"text":"a\nb\ud83d\ude00"}`)
	got := testing.AllocsPerRun(100, func() {
		if fits, err := s.Read(args); !fits || err != nil {
			t.Errorf("got %v, %v, want true", fits, err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
