package parameter_test

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

//go:embed testdata
var testdata embed.FS

// readLines returns the lines of a file of testdata, each JSON.
func readLines(t *testing.T, name string) (list []gjson.Result) {
	t.Helper()
	data, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		list = append(list, gjson.ParseBytes(line))
	}
	return list
}

// verifiedTokens are the tokens of calls.jsonl that an auth service verifies, with
// their claims.
var verifiedTokens = map[string]struct{ service, claims string }{
	"ok":     {"my_auth", `{"sub":"u1","aud":"aud1","email":"e@x","num":42}`},
	"nosub":  {"my_auth", `{"aud":"aud1"}`},
	"subint": {"my_auth", `{"sub":"u1","num":"x","aud":"aud1"}`},
	"numsub": {"my_auth", `{"sub":"u1","email":5,"aud":"aud1"}`},
	"aud2":   {"other-auth", `{"sub":"u2","aud":["aud2","x"]}`},
}

// claimsOf returns the claims of the tokens in a call's headers.
func claimsOf(headers gjson.Result) parameter.Claims {
	claims := map[string]string{}
	headers.ForEach(func(header, value gjson.Result) bool {
		token := strings.TrimSuffix(strings.TrimPrefix(value.Str, "{token:"), "}")
		if known, ok := verifiedTokens[token]; ok && header.Str == known.service+"_token" {
			claims[known.service] = known.claims
		}
		return true
	})
	return claimsFrom(claims)
}

// failsInSQL are the statements of the cases that fail in the database only.
var failsInSQL = map[int64]string{
	126: `SELECT  FROM flights ORDER BY id LIMIT 1`,
	127: `SELECT [id airline] FROM flights LIMIT 1`,
}

// The recorded calls of Toolbox have the same result here, as far as parameters decide.
func TestSet_ToolboxCalls(t *testing.T) {
	tools := map[string]gjson.Result{}
	for _, row := range readLines(t, "tools.jsonl") {
		tools[row.Get("name").Str] = row
	}
	for _, call := range readLines(t, "calls.jsonl") {
		t.Run(fmt.Sprint(call.Get("id").Int(), " ", call.Get("tool").Str), func(t *testing.T) {
			tool, ok := tools[call.Get("tool").Str]
			if !ok {
				t.Fatal("no such tool")
			}
			checkCall(t, tool, call)
		})
	}
}

func checkCall(t *testing.T, tool, call gjson.Result) {
	outcome := call.Get("outcome").Str
	set, template, fault := load(tool)
	if fault != "" {
		if outcome != "load" && outcome != "refused" {
			t.Errorf("rejected at load: %s; want %s", fault, outcome)
		}
		return
	}
	values, err := set.ParseArguments(json.RawMessage(call.Get("body").Str), claimsOf(call.Get("headers")), nil)
	text := ""
	if err == nil {
		text, err = template.RenderText(values)
	}
	if statement, ok := failsInSQL[call.Get("id").Int()]; ok {
		if err != nil || text != statement {
			t.Errorf("got %q, %v; want %q, which the database rejects", text, err, statement)
		}
		return
	}
	switch outcome {
	case "rows":
		checkRows(t, values, err, text, call)
	case "unauthenticated":
		wantError(t, err, errcode.Unauthenticated, "uid")
	case "tool_error", "refused":
		wantError(t, err, errcode.InvalidArguments)
	default:
		t.Errorf("the tool loads; want %s", outcome)
	}
}

// load compiles the parameters and the statement of a tool.
func load(tool gjson.Result) (*parameter.Set, *parameter.Template, string) {
	set, problems := parameter.CompileSet(parameter.Options{Services: services},
		specsOf(tool.Get("parameters").Raw), specsOf(tool.Get("templateParameters").Raw))
	if len(problems) > 0 {
		return nil, nil, fmt.Sprint(problems)
	}
	template, err := set.StatementTemplate(tool.Get("statement").Str)
	if err != nil {
		return nil, nil, err.Error()
	}
	return set, template, ""
}

// checkRows compares the bound values with the row that SQLite returned.
func checkRows(t *testing.T, values parameter.Values, err error, text string, call gjson.Result) {
	if err != nil {
		t.Fatalf("got %v, want rows", err)
	}
	rows := []string{call.Get("rows").Str}
	for _, any := range call.Get("rows_any").Array() {
		rows = append(rows, any.Str)
	}
	row := gjson.Parse(rows[len(rows)-1]).Get("0")
	var got []any
	switch {
	case strings.HasPrefix(text, "SELECT ?1 AS v, typeof(?1)"):
		got = append(values.BindTexts(), sqliteType(values.BindTexts()[0]))
	case strings.HasPrefix(text, "SELECT ?1 AS"):
		got = values.BindTexts()
	default:
		return // the row does not show the parameters
	}
	var want []string
	row.ForEach(func(_, column gjson.Result) bool {
		want = append(want, column.Raw)
		return true
	})
	if words := jsonOf(t, got); !sameRow(words, want) {
		t.Errorf("bound %v, want %v", words, want)
	}
}

// sameRow compares columns. Text that is JSON may be shown as that JSON.
func sameRow(got, want []string) bool {
	return slices.EqualFunc(got, want, func(got, want string) bool {
		g, w := gjson.Parse(got), gjson.Parse(want)
		return got == want || g.Type == gjson.Number && w.Type == gjson.Number && g.Float() == w.Float() || g.Str == w.Raw
	})
}

func jsonOf(t *testing.T, list []any) (words []string) {
	for _, v := range list {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, string(text))
	}
	return words
}

func sqliteType(v any) any {
	switch v.(type) {
	case string:
		return "text"
	case int64:
		return "integer"
	case float64:
		return "real"
	}
	return nil
}
