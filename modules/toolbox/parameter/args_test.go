package parameter_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/corpus"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

func TestSet_ParseArguments(t *testing.T) {
	for name, c := range map[string]struct {
		parameters, args string
		want             []any
	}{
		"a string":                    {`[{"type":"string"}]`, `{"a":"x"}`, []any{"x"}},
		"an empty string":             {`[{"type":"string"}]`, `{"a":""}`, []any{""}},
		"escapes":                     {`[{"type":"string"}]`, `{"\u0061":"\ud83d\ude00\u0000\n"}`, []any{"😀\x00\n"}},
		"an integer":                  {`[{"type":"integer"}]`, `{"a":-5}`, []any{int64(-5)}},
		"the largest integer":         {`[{"type":"integer"}]`, `{"a":9223372036854775807}`, []any{int64(9223372036854775807)}},
		"the smallest integer":        {`[{"type":"integer"}]`, `{"a":-9223372036854775808}`, []any{int64(-9223372036854775808)}},
		"beyond a float's digits":     {`[{"type":"integer"}]`, `{"a":9007199254740993}`, []any{int64(9007199254740993)}},
		"5.0 for an integer":          {`[{"type":"integer"}]`, `{"a":5.0}`, []any{int64(5)}},
		"1e3 for an integer":          {`[{"type":"integer"}]`, `{"a":1e3}`, []any{int64(1000)}},
		"150e-1 for an integer":       {`[{"type":"integer"}]`, `{"a":150e-1}`, []any{int64(15)}},
		"digits and an exponent":      {`[{"type":"integer"}]`, `{"a":9.223372036854775807e18}`, []any{int64(9223372036854775807)}},
		"minus zero":                  {`[{"type":"integer"}]`, `{"a":-0.0}`, []any{int64(0)}},
		"a float":                     {`[{"type":"float"}]`, `{"a":1.5}`, []any{1.5}},
		"an integer for a float":      {`[{"type":"float"}]`, `{"a":5}`, []any{5.0}},
		"a large float":               {`[{"type":"float"}]`, `{"a":1e21}`, []any{1e21}},
		"a tiny float":                {`[{"type":"float"}]`, `{"a":1e-400}`, []any{0.0}},
		"a boolean":                   {`[{"type":"boolean"}]`, `{"a":false}`, []any{false}},
		"strings":                     {`[{"type":"array","items":{"type":"string"}}]`, `{"a":["x",""]}`, []any{[]string{"x", ""}}},
		"no strings":                  {`[{"type":"array","items":{"type":"string"}}]`, `{"a":[]}`, []any{[]string{}}},
		"integers":                    {`[{"type":"array","items":{"type":"integer"}}]`, `{"a":[1,2.0]}`, []any{[]int64{1, 2}}},
		"floats":                      {`[{"type":"array","items":{"type":"float"}}]`, `{"a":[1,2.5]}`, []any{[]float64{1, 2.5}}},
		"booleans":                    {`[{"type":"array","items":{"type":"boolean"}}]`, `{"a":[true]}`, []any{[]bool{true}}},
		"arrays of arrays":            {`[{"type":"array","items":{"type":"array","items":{"type":"integer"}}}]`, `{"a":[[1],[]]}`, []any{[][]int64{{1}, {}}}},
		"maps in an array":            {`[{"type":"array","items":{"type":"map"}}]`, `{"a":[{"b":1,"a":null}]}`, []any{[]string{`{"b":1,"a":null}`}}},
		"any map":                     {`[{"type":"map"}]`, `{"a": {"k" : [1.0, {"x":null}, "<"], "a":true}}`, []any{`{"k":[1.0,{"x":null},"<"],"a":true}`}},
		"a map of integers":           {`[{"type":"map","valueType":"integer"}]`, `{"a":{"z":1.0,"a":9007199254740993}}`, []any{`{"z":1,"a":9007199254740993}`}},
		"an empty map":                {`[{"type":"map","valueType":"string"}]`, `{"a":{}}`, []any{`{}`}},
		"missing":                     {`[{"type":"string","required":false}]`, `{}`, []any{nil}},
		"null":                        {`[{"type":"array","items":{"type":"string"},"required":false}]`, `{"a":null}`, []any{nil}},
		"a default":                   {`[{"type":"integer","default":7,"required":true}]`, `{}`, []any{int64(7)}},
		"a default for null":          {`[{"type":"integer","default":7}]`, `{"a":null}`, []any{int64(7)}},
		"an empty default":            {`[{"type":"string","default":""}]`, `{}`, []any{""}},
		"a default of a list":         {`[{"type":"array","items":{"type":"string"},"default":["x",5]}]`, `{}`, []any{[]string{"x", "5"}}},
		"no arguments":                {`[{"type":"integer","default":7}]`, ``, []any{int64(7)}},
		"null arguments":              {`[{"type":"integer","default":7}]`, ` null `, []any{int64(7)}},
		"unknown names":               {`[{"type":"string"}]`, `{"a":"x","b":[{}],"":1}`, []any{"x"}},
		"in order":                    {`[{"name":"b","type":"string"},{"name":"a","type":"string"}]`, `{"a":"1","b":"2"}`, []any{"2", "1"}},
		"names in two cases":          {`[{"name":"a","type":"string"},{"name":"A","type":"string"}]`, `{"A":"1","a":"2"}`, []any{"2", "1"}},
		"an allowed literal":          {`[{"type":"string","allowedValues":["a.b","x"]}]`, `{"a":"a.b"}`, []any{"a.b"}},
		"allowed: a number's text":    {`[{"type":"string","allowedValues":[5]}]`, `{"a":"5"}`, []any{"5"}},
		"allowed: between slashes":    {`[{"type":"string","allowedValues":["/[A-Z]{2}/"]}]`, `{"a":"CY"}`, []any{"CY"}},
		"allowed: from ^ to $":        {`[{"type":"string","allowedValues":["^[A-Z]{2}$"]}]`, `{"a":"CY"}`, []any{"CY"}},
		"allowed: one of two":         {`[{"type":"string","allowedValues":["/a+/","b"]}]`, `{"a":"b"}`, []any{"b"}},
		"allowed: lines, by a flag":   {`[{"type":"string","allowedValues":["/(?s).*/"]}]`, `{"a":"x\ny"}`, []any{"x\ny"}},
		"allowed: a slash":            {`[{"type":"string","allowedValues":["/"]}]`, `{"a":"/"}`, []any{"/"}},
		"allowed: escaped slashes":    {`[{"type":"string","allowedValues":["/\\/data\\//"]}]`, `{"a":"/data/"}`, []any{"/data/"}},
		"allowed: an integer":         {`[{"type":"integer","allowedValues":[1,2]}]`, `{"a":1.0}`, []any{int64(1)}},
		"allowed: an integer quoted":  {`[{"type":"integer","allowedValues":["1"]}]`, `{"a":1}`, []any{int64(1)}},
		"allowed: a float":            {`[{"type":"float","allowedValues":[1.5,2]}]`, `{"a":2.0}`, []any{2.0}},
		"allowed: a float quoted":     {`[{"type":"float","allowedValues":["2"]}]`, `{"a":2}`, []any{2.0}},
		"allowed: a boolean quoted":   {`[{"type":"boolean","allowedValues":["true"]}]`, `{"a":true}`, []any{true}},
		"allowed: an array":           {`[{"type":"array","items":{"type":"integer"},"allowedValues":[[1,"2"]]}]`, `{"a":[1.0,2]}`, []any{[]int64{1, 2}}},
		"allowed: a map, any order":   {`[{"type":"map","allowedValues":[{"a":1,"b":[true]}]}]`, `{"a":{"b":[true],"a":1.0}}`, []any{`{"b":[true],"a":1.0}`}},
		"excluded: another":           {`[{"type":"integer","excludedValues":[13]}]`, `{"a":14}`, []any{int64(14)}},
		"excluded: a neighbour":       {`[{"type":"integer","excludedValues":[9007199254740993]}]`, `{"a":9007199254740992}`, []any{int64(9007199254740992)}},
		"excluded: another array":     {`[{"type":"array","items":{"type":"integer"},"excludedValues":[[1,2]]}]`, `{"a":[2,1]}`, []any{[]int64{2, 1}}},
		"at the minimum":              {`[{"type":"integer","minValue":1,"maxValue":10}]`, `{"a":1}`, []any{int64(1)}},
		"at the maximum":              {`[{"type":"float","minValue":0.5,"maxValue":1.5}]`, `{"a":1.5}`, []any{1.5}},
		"null as a limit":             {`[{"type":"integer","minValue":null}]`, `{"a":1}`, []any{int64(1)}},
		"empty lists":                 {`[{"type":"string","allowedValues":[],"excludedValues":[]}]`, `{"a":"x"}`, []any{"x"}},
		"escape: single quotes":       {`[{"type":"string","escape":"single-quotes"}]`, `{"a":"it's"}`, []any{"'it''s'"}},
		"escape: double quotes":       {`[{"type":"string","escape":"double-quotes"}]`, `{"a":"a\"b"}`, []any{`"a""b"`}},
		"escape: backticks":           {"[{\"type\":\"string\",\"escape\":\"backticks\"}]", "{\"a\":\"a`b\"}", []any{"`a``b`"}},
		"escape: brackets":            {`[{"type":"string","escape":"square-brackets"}]`, `{"a":"[a]b"}`, []any{"[[a]]b]"}},
		"escape: items":               {`[{"type":"array","items":{"type":"string","escape":"single-quotes"}}]`, `{"a":["'"]}`, []any{[]string{"''''"}}},
		"escape: after the checks":    {`[{"type":"string","escape":"single-quotes","allowedValues":["x"]}]`, `{"a":"x"}`, []any{"'x'"}},
		"escape: a default":           {`[{"type":"string","escape":"single-quotes","default":"x"}]`, `{}`, []any{"'x'"}},
		"a copy":                      {`[{"type":"string"},{"type":"string","valueFromParam":"a"}]`, `{"a":"x","b":"spoof"}`, []any{"x", "x"}},
		"a copy before":               {`[{"name":"b","type":"string","valueFromParam":"a"},{"name":"a","type":"string"}]`, `{"a":"x"}`, []any{"x", "x"}},
		"a copy, not escaped":         {`[{"type":"string","escape":"single-quotes"},{"type":"string","valueFromParam":"a"}]`, `{"a":"x"}`, []any{"'x'", "x"}},
		"a copy of an integer":        {`[{"type":"integer"},{"type":"float","valueFromParam":"a"}]`, `{"a":3}`, []any{int64(3), 3.0}},
		"a copy of a default":         {`[{"type":"string","default":"x"},{"type":"string","valueFromParam":"a"}]`, `{}`, []any{"x", "x"}},
		"a copy's own default":        {`[{"type":"string","required":false},{"type":"string","valueFromParam":"a","default":"y"}]`, `{}`, []any{nil, "y"}},
		"a copy of nothing, optional": {`[{"type":"string","required":false},{"type":"string","valueFromParam":"a","required":false}]`, `{}`, []any{nil, nil}},
		"a copy of a typed map":       {`[{"type":"map","valueType":"integer"},{"type":"map","valueFromParam":"a"}]`, `{"a":{"k":1}}`, []any{`{"k":1}`, `{"k":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseArgs(t, compile(t, c.parameters, `[]`), c.args).BindValues()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Each error names the parameter.
func TestSet_ParseArgumentsRejects(t *testing.T) {
	for name, c := range map[string]struct{ parameters, args, words string }{
		"missing":                     {`[{"type":"string"}]`, `{}`, `parameter "a" is required`},
		"null":                        {`[{"type":"string"}]`, `{"a":null}`, `parameter "a" is required`},
		"another case":                {`[{"type":"string"}]`, `{"A":"x"}`, `parameter "a" is required`},
		"no arguments":                {`[{"type":"string"}]`, ``, `parameter "a" is required`},
		"a list of arguments":         {`[]`, `[]`, "not a JSON object"},
		"a number of arguments":       {`[]`, `5`, "not a JSON object"},
		"two documents":               {`[]`, `{} {}`, "arguments"},
		"a name twice":                {`[{"type":"string"}]`, `{"a":"x","a":"y"}`, "duplicate key"},
		"nothing but blanks":          {`[]`, ` `, "arguments"},
		"a number for a string":       {`[{"type":"string"}]`, `{"a":5}`, `unable to parse value for "a": 5 is not type "string"`},
		"a string for an integer":     {`[{"type":"integer"}]`, `{"a":"5"}`, `unable to parse value for "a": "5" is not type "integer"`},
		"true for an integer":         {`[{"type":"integer"}]`, `{"a":true}`, `true is not type "integer"`},
		"a fraction for an integer":   {`[{"type":"integer"}]`, `{"a":5.5}`, "5.5"},
		"almost an integer":           {`[{"type":"integer"}]`, `{"a":5.00000000000000000001}`, "5.00000000000000000001"},
		"a tiny integer":              {`[{"type":"integer"}]`, `{"a":1e-400}`, "1e-400"},
		"an integer too large":        {`[{"type":"integer"}]`, `{"a":9223372036854775808}`, "9223372036854775808"},
		"an integer too small":        {`[{"type":"integer"}]`, `{"a":-9223372036854775809}`, "64 bits"},
		"a huge integer":              {`[{"type":"integer"}]`, `{"a":1e400}`, "64 bits"},
		"a string for a float":        {`[{"type":"float"}]`, `{"a":"1.5"}`, `"1.5" is not type "float"`},
		"too large a float":           {`[{"type":"float"}]`, `{"a":1e400}`, "out of the range of float64"},
		"1 for a boolean":             {`[{"type":"boolean"}]`, `{"a":1}`, `1 is not type "boolean"`},
		"a string for an array":       {`[{"type":"array","items":{"type":"string"}}]`, `{"a":"x"}`, `"x" is not type "array"`},
		"a map for an array":          {`[{"type":"array","items":{"type":"string"}}]`, `{"a":{}}`, `{} is not type "array"`},
		"an array for a map":          {`[{"type":"map"}]`, `{"a":[]}`, `[] is not type "map"`},
		"an element":                  {`[{"type":"array","items":{"type":"integer"}}]`, `{"a":[1,"2"]}`, `unable to parse value for "a": unable to parse element #1: "2" is not type "integer"`},
		"an element, null":            {`[{"type":"array","items":{"type":"integer"}}]`, `{"a":[null]}`, `element #0: null is not type`},
		"an element's limit":          {`[{"type":"array","items":{"type":"integer","minValue":1,"maxValue":3}}]`, `{"a":[4]}`, "element #0: 4 is above the maximum value 3"},
		"an element of an element":    {`[{"type":"array","items":{"type":"array","items":{"type":"integer"}}}]`, `{"a":[[],[0,true]]}`, "element #1: unable to parse element #1: true"},
		"a value":                     {`[{"type":"map","valueType":"string"}]`, `{"a":{"k":null}}`, `unable to parse value for key "k": null is not type "string"`},
		"an unbounded number inside":  {`[{"type":"map"}]`, `{"a":{"k":[{"x":1e400}]}}`, "1e400, which is out of the range of float64"},
		"not allowed":                 {`[{"type":"string","allowedValues":["x","yy"]}]`, `{"a":"q"}`, `"q" is not an allowed value: want "x" or "yy"`},
		"allowed, but within":         {`[{"type":"string","allowedValues":["x"]}]`, `{"a":"axb"}`, "not an allowed value"},
		"allowed, with a line":        {`[{"type":"string","allowedValues":["^[A-Z]{2}$"]}]`, `{"a":"CY\n"}`, "text that matches ^[A-Z]{2}$"},
		"allowed, on a line":          {`[{"type":"string","allowedValues":["^(?m)CY$"]}]`, `{"a":"CY\nx"}`, "not an allowed value"},
		"allowed, half of a choice":   {`[{"type":"string","allowedValues":["/a|b/"]}]`, `{"a":"ab"}`, "not an allowed value"},
		"allowed, anchors of a half":  {`[{"type":"string","allowedValues":["^a|b$"]}]`, `{"a":"a; x"}`, "not an allowed value"},
		"allowed: a literal dot":      {`[{"type":"string","allowedValues":["a.b"]}]`, `{"a":"axb"}`, "not an allowed value"},
		"allowed: a number's text":    {`[{"type":"string","allowedValues":[5.0]}]`, `{"a":"5"}`, `want "5.0"`},
		"allowed: another integer":    {`[{"type":"integer","allowedValues":["1"]}]`, `{"a":21}`, "21 is not an allowed value"},
		"allowed: a neighbour":        {`[{"type":"integer","allowedValues":[9007199254740993]}]`, `{"a":9007199254740992}`, "not an allowed value"},
		"allowed: another float":      {`[{"type":"float","allowedValues":[0.1]}]`, `{"a":0.10000000000000001}`, "not an allowed value"},
		"allowed: another boolean":    {`[{"type":"boolean","allowedValues":[true]}]`, `{"a":false}`, "want true"},
		"allowed: another array":      {`[{"type":"array","items":{"type":"string"},"allowedValues":[["a","b"]]}]`, `{"a":["a"]}`, `want ["a","b"]`},
		"allowed: elements in order":  {`[{"type":"array","items":{"type":"string"},"allowedValues":[["a","b"]]}]`, `{"a":["b","a"]}`, "not an allowed value"},
		"allowed: no map":             {`[{"type":"map","allowedValues":[{"a":1}]}]`, `{"a":{"a":1,"b":2}}`, "not an allowed value"},
		"allowed: many":               {`[{"type":"integer","allowedValues":[1,2,3,4,5,6,7,8,9,10,11]}]`, `{"a":0}`, "10 or others"},
		"the array before elements":   {`[{"type":"array","items":{"type":"integer"},"allowedValues":[[1]]}]`, `{"a":["x"]}`, "not an allowed value"},
		"excluded anywhere":           {`[{"type":"string","excludedValues":["bad"]}]`, `{"a":"not-bad-at-all"}`, "is an excluded value"},
		"excluded, slashes":           {`[{"type":"string","excludedValues":["/bad/"]}]`, `{"a":"not-bad-at-all"}`, "is an excluded value"},
		"excluded, a flag":            {`[{"type":"string","excludedValues":["(?i)^drop"]}]`, `{"a":"DROP TABLE"}`, "is an excluded value"},
		"excluded: a number's text":   {`[{"type":"string","excludedValues":[5]}]`, `{"a":"150"}`, "is an excluded value"},
		"excluded: an integer":        {`[{"type":"integer","excludedValues":[13]}]`, `{"a":13.0}`, "13.0 is an excluded value"},
		"excluded: what rounds to it": {`[{"type":"float","excludedValues":[0.1]}]`, `{"a":0.10000000000000001}`, "is an excluded value"},
		"excluded: rounds, within":    {`[{"type":"array","items":{"type":"float"},"excludedValues":[[9007199254740992]]}]`, `{"a":[9007199254740993]}`, "is an excluded value"},
		"excluded: an array":          {`[{"type":"array","items":{"type":"integer"},"excludedValues":[[1,2]]}]`, `{"a":[1,2.0]}`, "is an excluded value"},
		"excluded: any map":           {`[{"type":"map","excludedValues":[{"k":null,"x":[1]}]}]`, `{"a":{"x":[1.0],"k":null}}`, "is an excluded value"},
		"allowed and excluded":        {`[{"type":"string","allowedValues":["/a.*/"],"excludedValues":["b$"]}]`, `{"a":"ab"}`, "is an excluded value"},
		"under the minimum":           {`[{"type":"integer","minValue":1}]`, `{"a":0}`, "0 is under the minimum value 1"},
		"above the maximum":           {`[{"type":"integer","maxValue":10}]`, `{"a":11}`, "11 is above the maximum value 10"},
		"just under":                  {`[{"type":"float","minValue":0.1}]`, `{"a":0.09999999999999999999}`, "under the minimum"},
		"just above":                  {`[{"type":"integer","maxValue":9007199254740992}]`, `{"a":9007199254740993}`, "above the maximum"},
		"the first in order":          {`[{"type":"string"},{"type":"integer"}]`, `{"b":"x","a":1}`, `"a"`},
		"a copy, by its own rules":    {`[{"type":"string"},{"type":"string","valueFromParam":"a","allowedValues":["y"]}]`, `{"a":"x"}`, `value for "b": "x" is not an allowed value`},
		"a copy of nothing":           {`[{"type":"string","required":false},{"type":"string","valueFromParam":"a"}]`, `{"b":"x"}`, `parameter "b" is required`},
		"a long value":                {`[{"type":"integer"}]`, `{"a":"` + strings.Repeat("é", 500) + `"}`, `éé…`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, c.parameters, `[]`).ParseArguments(json.RawMessage(c.args), nil, nil)
			wantError(t, err, errcode.InvalidArguments, c.words)
			if len(err.Error()) > 300 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// Ordinary parameters are checked before those of the template.
func TestSet_ParseArgumentsChecksTemplateParametersLast(t *testing.T) {
	set := compile(t, `[{"name":"a","type":"string"}]`, `[{"name":"t","type":"string"}]`)
	_, err := set.ParseArguments(json.RawMessage(`{"t":5,"a":5}`), nil, nil)
	wantError(t, err, errcode.InvalidArguments, `"a"`)
	_, err = set.ParseArguments(json.RawMessage(`{"t":5,"a":"x"}`), nil, nil)
	wantError(t, err, errcode.InvalidArguments, `"t"`)
}

// NUL would end a statement early.
func TestSet_ParseArgumentsRejectsNULInTemplateParameters(t *testing.T) {
	for _, spec := range []string{`{"type":"string"}`, `{"type":"array","items":{"type":"string"}}`, `{"type":"map","valueType":"string"}`} {
		set := compile(t, `[]`, `[`+spec+`]`)
		for _, value := range []string{`"x\u0000"`, `["x\u0000"]`, `{"k":"x\u0000"}`} {
			_, err := set.ParseArguments(json.RawMessage(`{"a":`+value+`}`), nil, nil)
			wantError(t, err, errcode.InvalidArguments, `"a"`)
		}
	}
}

// No document is accepted that two JSON readers could read differently.
func TestSet_ParseArgumentsRejectsAmbiguousJSON(t *testing.T) {
	set := compile(t, `[{"type":"map","required":false}]`, `[]`)
	for _, d := range corpus.JSONDocuments() {
		args := append(append([]byte(`{"a":{"k":`), d.Text...), "}}"...)
		if _, err := set.ParseArguments(args, nil, nil); d.Expect == corpus.ExpectReject && err == nil {
			t.Errorf("%s was accepted: %.100q", d.Name, d.Text)
		}
	}
}

// Arrays are bound as JSON.
func TestValues_BindTexts(t *testing.T) {
	set := compile(t, `[{"type":"array","items":{"type":"float"}},{"type":"array","items":{"type":"map"}},{"type":"integer"},{"type":"string","required":false},{"type":"array","items":{"type":"string"}}]`, `[{"name":"t","type":"string"}]`)
	got := parseArgs(t, set, `{"a":[1, 2.5,1e21],"b":[{"z":1.0 , "a":"<é>"}],"c":5,"e":[],"t":"x"}`).BindTexts()
	want := []any{`[1,2.5,1e+21]`, `[{"z":1.0,"a":"<é>"}]`, int64(5), nil, `[]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// JSON returns all values or the named ones, without missing ones.
func TestValues_JSON(t *testing.T) {
	set := compile(t, `[{"type":"string"},{"type":"integer","required":false}]`, `[{"name":"t","type":"boolean"}]`)
	values := parseArgs(t, set, `{"t":true,"a":"\u003c"}`)
	for _, c := range []struct {
		names []string
		want  string
	}{{nil, `{"a":"<","t":true}`}, {[]string{"t", "zzz"}, `{"t":true}`}, {[]string{"b"}, `{}`}} {
		if got := string(values.JSON(c.names...)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.names, got, c.want)
		}
	}
}

// Value finds the parameters of both lists.
func TestValues_LookupValue(t *testing.T) {
	values := parseArgs(t, compile(t, `[{"type":"string","required":false}]`, `[{"name":"t","type":"map"}]`), `{"t":{}}`)
	for name, want := range map[string]any{"a": nil, "t": "{}"} {
		if got, ok := values.LookupValue(name); !ok || got != want {
			t.Errorf("%s: got %v, %v; want %v", name, got, ok, want)
		}
	}
	if _, ok := values.LookupValue("A"); ok {
		t.Error("found the parameter A, which does not exist")
	}
}

// The zero Set and the zero Values have no parameters.
func TestZeroValuesAreEmpty(t *testing.T) {
	var set parameter.Set
	values, err := set.ParseArguments(json.RawMessage(`{"a":1}`), nil, nil)
	if err != nil || len(values.BindValues()) > 0 || string(values.JSON()) != "{}" {
		t.Errorf("got %v, %v; want nothing", values, err)
	}
	var none parameter.Values
	if _, ok := none.LookupValue("a"); ok || len(none.BindValues()) > 0 || fmt.Sprint(none) != "{}" {
		t.Errorf("got %v, want nothing", none)
	}
}

func TestSet_ParseArgumentsConcurrently(t *testing.T) {
	set := compile(t, `[{"type":"string","allowedValues":["/x+/"]}]`, `[{"name":"t","type":"array","items":{"type":"string"}}]`)
	template, err := set.StatementTemplate(`{{range .t}}{{.}}{{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				values := parseArgs(t, set, `{"a":"xx","t":["a","b"]}`)
				if text, err := template.RenderText(values); text != "ab" || err != nil {
					t.Errorf("got %q, %v", text, err)
				}
				if got := values.BindValues(); !reflect.DeepEqual(got, []any{"xx"}) {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	all.Wait()
}
