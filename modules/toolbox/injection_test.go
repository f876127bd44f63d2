package toolbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/tool"
)

// attacks returns strings of SQL injections and special characters.
func attacks(t *testing.T) (list []string) {
	t.Helper()
	for line := range bytes.Lines([]byte(readTestdata(t, "sql_injection.jsonl"))) {
		list = append(list, gjson.GetBytes(line, "v").Str)
	}
	if len(list) < 900 {
		t.Fatalf("only %d attacks", len(list))
	}
	return append(list, `\`, `\'`, `'`, `''`, `"`, `""`, "`", "]", "[", "]]", `\"; DROP TABLE canary; --`, "'; DROP TABLE canary; --", "$1", "?", "?1", ":a", "@a", "{{.w}}", "\u02bc", "\uff07")
}

// attackedPlace is a tool with a value in one place.
type attackedPlace struct {
	name       string
	statement  string // %s is the database's placeholder
	parameters string // fields of the tool
	array      bool   // the value is the only element of an array
	mapped     bool   // the value is the only value of a map
	credential bool   // the value is sent as a secure argument and as a claim
	as         string // how the result has the value; "" is anywhere or not at all
	only       string // the database, "" for all
}

func text(extra string) string {
	return `{"name": "w", "type": "string", "description": "d"` + extra + `}`
}

var places = []attackedPlace{
	{name: "bound", statement: "SELECT %s AS v", parameters: `"parameters": [` + text("") + `]`, as: "v"},
	{name: "copied", statement: "SELECT %s AS v", parameters: `"parameters": [{"name": "c", "type": "string", "description": "d", "valueFromParam": "w"}], "templateParameters": [` + text("") + `]`, as: "v"},
	{name: "secure", statement: "SELECT %s AS v", credential: true, parameters: `"parameters": [` + text(`, "secure": true`) + `]`, as: "v"},
	{name: "claim", statement: "SELECT %s AS v", credential: true, parameters: `"parameters": [` + text(`, "authServices": [{"name": "id", "field": "w"}]`) + `]`, as: "v"},
	{name: "secure_literal", statement: "SELECT {{.w}} AS v", credential: true, parameters: `"templateParameters": [` + text(`, "escape": "single-quotes", "secure": true`) + `]`, as: "v"},
	{name: "claim_literal", statement: "SELECT {{.w}} AS v", credential: true, parameters: `"templateParameters": [` + text(`, "escape": "single-quotes", "authServices": [{"name": "id", "field": "w"}]`) + `]`, as: "v"},
	{name: "array", statement: "SELECT %s AS v", array: true, parameters: `"parameters": [{"name": "w", "type": "array", "description": "d", "items": ` + text("") + `}]`, as: "array"},
	{name: "map", statement: "SELECT %s AS v", mapped: true, parameters: `"parameters": [{"name": "w", "type": "map", "description": "d"}]`, as: "map"},
	{name: "bound_escaped", statement: "SELECT %s AS v", parameters: `"parameters": [` + text(`, "escape": "single-quotes"`) + `]`, as: "quoted"},
	{name: "literal", statement: "SELECT {{.w}} AS v", parameters: `"templateParameters": [` + text(`, "escape": "single-quotes"`) + `]`, as: "v"},
	{name: "literals", statement: "SELECT {{array .w}} AS v", array: true, parameters: `"templateParameters": [{"name": "w", "type": "array", "description": "d", "items": ` + text(`, "escape": "single-quotes"`) + `}]`, as: "v"},
	{name: "identifier", statement: `SELECT id AS {{.w}} FROM canary`, parameters: `"templateParameters": [` + text(`, "escape": "double-quotes"`) + `]`, as: "column"},
	{name: "identifiers", statement: `SELECT {{array .w}} FROM canary`, array: true, parameters: `"templateParameters": [{"name": "w", "type": "array", "description": "d", "items": ` + text(`, "escape": "double-quotes"`) + `}]`},
	{name: "backticks", statement: "SELECT id AS {{.w}} FROM canary", parameters: `"templateParameters": [` + text(`, "escape": "backticks"`) + `]`, as: "column", only: "sqlite"},
	{name: "brackets", statement: "SELECT id AS {{.w}} FROM canary", parameters: `"templateParameters": [` + text(`, "escape": "square-brackets"`) + `]`, only: "sqlite"},
	{name: "allowed", statement: "SELECT count(*) AS v FROM {{.w}}", parameters: `"templateParameters": [` + text(`, "allowedValues": ["canary"]`) + `]`, as: "refused"},
	{name: "matched", statement: "SELECT count(*) AS v FROM {{.w}}", parameters: `"templateParameters": [` + text(`, "allowedValues": ["/[a-z]{6}/"], "excludedValues": ["^(select|having)$"]`) + `]`},
	{name: "number", statement: "SELECT {{.w}} AS v", parameters: `"templateParameters": [{"name": "w", "type": "integer", "description": "d"}]`, as: "refused"},
	{name: "float", statement: "SELECT {{.w}} AS v", parameters: `"templateParameters": [{"name": "w", "type": "float", "description": "d"}]`, as: "refused"},
	{name: "truth", statement: "SELECT {{.w}} AS v", parameters: `"templateParameters": [{"name": "w", "type": "boolean", "description": "d"}]`, as: "refused"},
	{name: "plan", statement: "EXPLAIN SELECT id FROM canary WHERE v = {{.w}} OR v = {{.w}}", parameters: `"templateParameters": [` + text(`, "escape": "single-quotes"`) + `]`, as: "plan"},
}

func (p attackedPlace) document(kind string) string {
	placeholder := map[string]string{"sqlite": "?1", "postgres": "$1::text"}[kind]
	if kind == "postgres" && p.array {
		placeholder = "$1::text[]"
	}
	if p.mapped && kind == "postgres" {
		placeholder = "$1::jsonb"
	}
	statement := p.statement
	if strings.Contains(statement, "%s") {
		statement = fmt.Sprintf(statement, placeholder)
	}
	return fmt.Sprintf("\n---\n"+`{"kind": "tool", "name": %q, "type": "%s-sql", "source": "db", "description": "d", "statement": %q, %s}`, p.name, kind, statement, p.parameters)
}

func (p attackedPlace) args(value string) string {
	var w any = value
	switch {
	case p.array:
		w = []string{value}
	case p.mapped:
		w = map[string]string{"k": value}
	}
	doc, _ := json.Marshal(map[string]any{"w": w})
	return string(doc)
}

// claimsAuthn is a gate.TokenVerifier that uses the token itself as its claims.
type claimsAuthn struct{}

func (claimsAuthn) VerifyToken(_ context.Context, _, token string) (gate.VerifiedToken, error) {
	return gate.VerifiedToken{Claims: json.RawMessage(token)}, nil
}

// call calls the tool of a place with a value.
func (p attackedPlace) call(t *testing.T, w *fixture, value string) *gate.Admission {
	t.Helper()
	args := p.args(value)
	if !p.credential {
		return w.call(t.Context(), p.name, args)
	}
	credentials := tool.Credentials{Secure: json.RawMessage(args), Tokens: map[string]string{"id": args}}
	return w.call(tool.WithCredentials(t.Context(), credentials), p.name, `{"w": "of the body"}`)
}

// No value changes the structure of a statement: the database returns it unchanged, as
// one value in its place.
func TestStatement_ValuesNeverChangeStructure(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			doc := databases[kind](t) + fmt.Sprintf("\n---\n{kind: tool, name: do, type: %s-execute-sql, source: db, description: d}", kind)
			for _, p := range places {
				if p.only == "" || p.only == kind {
					doc += p.document(kind)
				}
			}
			c := parse(t, doc+"\n---\n{kind: authService, name: id, type: generic, audience: a, authorizationServer: https://id.example.com}")
			w := newFixture(t, c)
			w.authn = claimsAuthn{}
			w.load(c)
			w.rows("do", `{"sql": "CREATE TABLE canary(id integer, v text)"}`)
			w.rows("do", `{"sql": "INSERT INTO canary VALUES (7, 'alive')"}`)
			for _, p := range places {
				if p.only == "" || p.only == kind {
					t.Run(p.name, func(t *testing.T) { runAttacks(t, w, p, kind) })
				}
			}
		})
	}
}

func runAttacks(t *testing.T, w *fixture, p attackedPlace, kind string) {
	benign := ""
	if p.as == "plan" {
		benign = plan(resultText(p.call(t, w, "x").Result))
	}
	for _, value := range short.SampleList(t, 150, attacks(t)) {
		a := p.call(t, w, value)
		got := resultText(a.Result)
		switch {
		case strings.Contains(value, "\x00") && kind == "postgres": // PostgreSQL has no strings with NUL
			if !a.Result.IsError {
				t.Errorf("%q: got %s", value, got)
			}
		case p.as == "refused":
			wantCode(t, a, errcode.InvalidArguments)
		case p.as == "plan":
			if plan(got) != benign {
				t.Errorf("%q: changed the query plan: %s", value, got)
			}
		case p.as == "" || p.as == "column" && (value == "" || kind == "postgres" && len(value) > 63):
			if !a.Result.IsError && (!gjson.Valid(got) || len(gjson.Parse(got).Array()) != 1) {
				t.Errorf("%q: got %s", value, got)
			}
		default:
			wantValue(t, p.as, kind, value, got)
		}
		if t.Failed() {
			break
		}
	}
	if got := w.rows("do", `{"sql": "SELECT id, v FROM canary"}`); got != `[{"id":7,"v":"alive"}]` {
		t.Errorf("the canary table changed: %s", got)
	}
}

// wantValue checks that the result is one row with the value.
func wantValue(t *testing.T, as, kind, value, got string) {
	t.Helper()
	var row, first gjson.Result
	if rows := gjson.Parse(got).Array(); len(rows) == 1 {
		row = rows[0]
	}
	first = row.Get("v")
	var back string
	switch {
	case as == "column":
		row.ForEach(func(key, _ gjson.Result) bool { back = key.Str; return false })
	case as == "array" && kind == "sqlite":
		back = gjson.Parse(first.Str).Get("0").Str
	case as == "array":
		back = first.Get("0").Str
	case as == "map" && kind == "sqlite":
		back = gjson.Parse(first.Str).Get("k").Str
	case as == "map":
		back = first.Get("k").Str
	case as == "quoted":
		back = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(first.Str, "'"), "'"), "''", "'")
	default:
		back = first.Str
	}
	if back != value || !utf8.ValidString(back) {
		t.Errorf("%q: got %s", value, got)
	}
}

// literals matches what a plan contains of values, and what depends on their length.
var literals = regexp.MustCompile(`'(?:[^']|'')*'|\(cost=[^)]*\)`)

// plan returns a query plan without values: the opcodes of SQLite, the nodes of
// PostgreSQL.
func plan(rows string) string {
	var b strings.Builder
	for _, row := range gjson.Parse(rows).Array() {
		if op := row.Get("opcode"); op.Exists() {
			fmt.Fprintln(&b, op.Str, row.Get("p1"), row.Get("p2"), row.Get("p3"))
			continue
		}
		fmt.Fprintln(&b, literals.ReplaceAllString(row.Get("QUERY PLAN").Str, "_"))
	}
	return b.String()
}
