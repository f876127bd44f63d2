package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

// The reference in docs/api.md is made from the routes.
func TestReference_IsCurrent(t *testing.T) {
	const name, begin, end = "../docs/api.md", "-run Reference -update -->\n", "<!-- reference: end -->"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the reference", name)
	}
	want := before + begin + reference() + newBodyTables(t) + end + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("%s is not current; run go test ./gateway -run Reference -update\n%s", name, diff)
	}
}

// reference returns the tables of error codes and of routes.
func reference() string {
	var b strings.Builder
	b.WriteString("| status | codes |\n|---|---|\n")
	codes := map[int][]string{}
	for code := range answeredCodes() {
		status := wire.StatusOf(errcode.New(code, ""))
		codes[status] = append(codes[status], "`"+string(code)+"`")
	}
	codes[http.StatusPreconditionFailed] = []string{"`conflict`, if `If-Match` names another revision"}
	for _, status := range slices.Sorted(maps.Keys(codes)) {
		slices.Sort(codes[status])
		fmt.Fprintf(&b, "| %d | %s |\n", status, strings.Join(codes[status], ", "))
	}
	b.WriteString("\nEvery route may answer " + listCodes(commonErrors) + ". The tables below have the other codes of each route.\n" +
		"\n## Routes\n\nShapes have their names in `/api/openapi.json`. A list whose answer ends in `Page` has the parameters `limit` and `cursor`.\n" +
		"A route serves tokens of its scopes. `none` is a request without a valid token. A token of a role sees what its role sees.\n")
	for _, tag := range tagTitles {
		writeRoutes(&b, tag.title, slices.DeleteFunc(allRoutes(), func(r route) bool { return r.tag != tag.name }))
	}
	return b.String() + "\n"
}

// writeRoutes writes the routes of a tag, and their parameters. Those of other protocols are
// listed for the sender's own role only.
func writeRoutes(b *strings.Builder, title string, list []route) {
	fmt.Fprintf(b, "\n### %s\n\n", title)
	if of := list[0].protocol; of != "" {
		fmt.Fprintf(b, "The shapes are those of %s. The operator names a role before the path: `/roles/{role}`.\n\n", of)
	}
	b.WriteString("| route | | scopes | body | answer | codes |\n|---|---|---|---|---|---|\n")
	for _, r := range list {
		if r.protocol == "" || !strings.HasPrefix(r.path, "/roles/") {
			b.WriteString(referenceRow(r))
		}
	}
	if rows := parameterRows(list); len(rows) > 0 {
		b.WriteString("\n| parameter | of | meaning |\n|---|---|---|\n" + strings.Join(rows, ""))
	}
}

// parameterRows returns the rows of the parameters of routes, apart from those of all pages.
func parameterRows(list []route) (rows []string) {
	for _, r := range list {
		for _, p := range r.params {
			if p.name == limitQuery.name || p.name == cursorQuery.name {
				continue
			}
			name, about := "`"+p.name+"`", p.about
			if p.header {
				name = "header " + name
			}
			if p.allowed != nil {
				about += ": `" + strings.Join(p.allowed, "`, `") + "`"
			}
			rows = append(rows, fmt.Sprintf("| %s | `%s %s` | %s |\n", name, r.method, r.displayPath(), about))
		}
	}
	return rows
}

// newBodyTables returns the tables of the fields of requests.
func newBodyTables(t *testing.T) string {
	s := newSchemas(t)
	var b strings.Builder
	b.WriteString("## Bodies of requests\n")
	done := map[string]bool{}
	for _, r := range allRoutes() {
		if r.body == nil || reflect.TypeOf(r.body).Kind() != reflect.Struct || done[shapeName(r.body)] {
			continue
		}
		s.refTo(r.body, false)
		done[shapeName(r.body)] = true
		schema := s.components[componentName(reflect.TypeOf(r.body))].(*jsonschema.Schema)
		fmt.Fprintf(&b, "\n### %s\n\n| field | type | meaning |\n|---|---|---|\n", strings.Trim(shapeName(r.body), "`"))
		for _, name := range schema.PropertyOrder {
			p := schema.Properties[name]
			kind := typeText(p)
			if slices.Contains(schema.Required, name) {
				kind = "required " + kind
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kind, strings.ReplaceAll(p.Description, "|", "\\|"))
		}
	}
	return b.String() + "\n"
}

// typeText returns the type of a field in words.
func typeText(p *jsonschema.Schema) string {
	switch {
	case p.Ref != "":
		return "`" + p.Ref[strings.LastIndex(p.Ref, "/")+1:] + "`"
	case p.AnyOf != nil:
		return typeText(p.AnyOf[0]) + " or null"
	case p.Enum != nil:
		words := make([]string, len(p.Enum))
		for i, w := range p.Enum {
			words[i] = fmt.Sprintf("`%v`", w)
		}
		return strings.Join(words, ", ")
	case p.Items != nil:
		return "list of " + typeText(p.Items)
	case p.Type == "":
		return "JSON"
	}
	return p.Type
}

// tagTitles are the titles of the tags of routes, in order.
var tagTitles = []struct{ name, title string }{
	{"tasks", "Tasks"}, {"approvals", "Approvals"}, {"events", "Events"}, {"agents", "Agents"}, {"roles", "Roles"}, {"tools", "Tools"}, {"artifacts", "Artifacts"},
	{"process", "The process"}, {"toolbox", "MCP Toolbox"}, {"mcp", "Model Context Protocol"}, {"openai", "The OpenAI API"}, {"authzen", "AuthZEN"}, {"hooks", "Triggers"},
	{"sessions", "Sessions of browsers"},
}

// answeredCodes returns the error codes of all routes.
func answeredCodes() map[errcode.Code]bool {
	list := map[errcode.Code]bool{wire.MethodNotAllowed: true, wire.RouteNotFound: true}
	for _, code := range commonErrors {
		list[code] = true
	}
	for _, r := range allRoutes() {
		for _, code := range r.errors {
			list[code] = true
		}
	}
	return list
}

// referenceRow returns the row of a route.
func referenceRow(r route) string {
	codes := r.errors
	if r.protocol != "" {
		codes = nil
	}
	return fmt.Sprintf("| `%s %s` | %s | %s | %s | %s | %s |\n", r.method, r.displayPath(), r.summary, scopesText(r), shapeName(r.body), answerNames(r), listCodes(codes))
}

// scopesText lists the scopes that a route takes.
func scopesText(r route) string {
	if r.hook {
		return "secret of the trigger"
	}
	list := strings.Fields(r.scopes.String())
	slices.Reverse(list)
	return strings.Join(list, ", ")
}

// answerNames lists the shapes and the other media types of a route's answers.
func answerNames(r route) string {
	var names []string
	if several, ok := r.answer.(answerOneOf); ok {
		for _, one := range several {
			names = append(names, shapeName(one))
		}
	} else if r.answer != nil {
		names = append(names, shapeName(r.answer))
	}
	for _, m := range r.media {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}

// shapeName returns the name of a type in the document of the API, "" for nil.
func shapeName(v any) string {
	switch t := reflect.TypeOf(v); {
	case t == nil:
		return ""
	case t.Kind() != reflect.Struct:
		return "JSON"
	default:
		return "`" + componentName(t) + "`"
	}
}

func listCodes(list []errcode.Code) string {
	names := make([]string, len(list))
	for i, code := range list {
		names[i] = "`" + string(code) + "`"
	}
	return strings.Join(names, ", ")
}
