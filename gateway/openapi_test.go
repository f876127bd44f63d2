package gateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/toolboxapi"
	"github.com/rolecall/rolecall/gateway/wire"
)

var update = flag.Bool("update", false, "write openapi.json and the reference in docs/api.md")

// The document of the API is made from the routes and the types of their bodies and answers.
func TestOpenAPI_DocumentIsCurrent(t *testing.T) {
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(newDocument(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(openapiDocument), got.String()); diff != "" {
		t.Errorf("openapi.json is not current; run go test ./gateway -run TestOpenAPI -update\n%s", diff)
	}
}

// allRoutes returns the table of routes.
func allRoutes() []route { return new(api).routes() }

// Each route has what the document needs, and a name of its own.
func TestRoutes_AreDescribed(t *testing.T) {
	names := map[string]string{}
	for _, r := range allRoutes() {
		at := r.method + " " + r.path
		if r.id == "" || names[r.id] != "" {
			t.Errorf("%s: the id %q is missing, or that of %s", at, r.id, names[r.id])
		}
		names[r.id] = at
		if r.summary == "" || strings.HasSuffix(r.summary, ".") || r.serve == nil || r.tag == "" {
			t.Errorf("%s: summary %q, tag %q", at, r.summary, r.tag)
		}
		if (r.scopes == 0) != r.hook {
			t.Errorf("%s: no scopes, so it serves no caller, or a hook with scopes", at)
		}
		empty := r.status == http.StatusNoContent || r.status == http.StatusSeeOther
		if r.answer == nil && r.media == nil && r.protocol != mcpProtocol && !empty {
			t.Errorf("%s: no answer", at)
		}
		for _, p := range r.params {
			if p.about == "" {
				t.Errorf("%s: parameter %s is not described", at, p.name)
			}
		}
		for _, code := range r.errors {
			if slices.Contains(commonErrors, code) || wire.StatusOf(errcode.New(code, "")) == http.StatusInternalServerError {
				t.Errorf("%s: %s is common, or has no status", at, code)
			}
		}
	}
}

// newDocument returns the document of the routes.
func newDocument(t *testing.T) obj {
	s := newSchemas(t)
	paths := obj{}
	for _, r := range allRoutes() {
		path := r.displayPath()
		if paths[path] == nil {
			paths[path] = obj{}
		}
		paths[path].(obj)[strings.ToLower(r.method)] = s.operation(r)
	}
	fault := obj{
		"description": "An error. Every route may answer with the codes " + joinCodes(commonErrors) + ".", "x-error-codes": commonErrors,
		"content": jsonContent(s.refTo(wire.ErrorBody{}, true)),
	}
	return obj{
		"openapi": "3.1.0",
		"info": obj{
			"title": "rolecall", "version": "1",
			"description": "The HTTP API of an organization of agents. Names and ids in a path are escaped as RFC 3986 says.",
		},
		"servers":  []obj{{"url": "http://127.0.0.1:7464"}},
		"security": []obj{{"bearer": []string{}}},
		"paths":    paths,
		"components": obj{
			"schemas": s.components, "responses": obj{"Error": fault},
			"securitySchemes": obj{"bearer": obj{"type": "http", "scheme": "bearer", "description": "a token of kind: gateway"}},
		},
	}
}

// operation returns a route of the document.
func (s *schemas) operation(r route) obj {
	out := obj{
		"operationId": r.id, "summary": r.summary, "tags": []string{r.tag}, "x-scopes": strings.Fields(r.scopes.String()),
		"responses": s.responses(r), "x-error-codes": r.errors,
	}
	if r.errors == nil {
		delete(out, "x-error-codes")
	}
	if list := parameters(r); len(list) > 0 {
		out["parameters"] = list
	}
	if r.hook {
		out["security"] = []obj{{}}
		out["description"] = "The header has a token or a signature of the body, as the document of the trigger says."
	}
	if r.scopes.Has(auth.ScopeNone) {
		out["security"] = []obj{{}, {"bearer": []string{}}}
	}
	if r.protocol != "" {
		out["description"] = "The shapes are those of " + string(r.protocol) + "."
	}
	if r.body != nil {
		out["requestBody"] = obj{"required": !r.optional, "content": jsonContent(s.refTo(r.body, false))}
	}
	return out
}

// parameters returns the parameters of a route: of its path, its query and its headers.
func parameters(r route) (list []obj) {
	for part := range strings.SplitSeq(r.displayPath(), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, obj{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": obj{"type": "string"}})
		}
	}
	for _, p := range r.params {
		schema := obj{"type": "string"}
		if p.kind != "" {
			schema["type"] = p.kind
		}
		if p.allowed != nil {
			schema["enum"] = p.allowed
		}
		if p.repeats {
			schema = obj{"type": "array", "items": schema}
		}
		in := "query"
		if p.header {
			in = "header"
		}
		list = append(list, obj{"name": p.name, "in": in, "description": p.about, "schema": schema})
	}
	return list
}

// responses returns the answers of a route by status.
func (s *schemas) responses(r route) obj {
	success := obj{"description": "success"}
	content := obj{}
	if r.answer != nil {
		content["application/json"] = obj{"schema": s.answerSchema(r.answer)}
	}
	for _, m := range r.media {
		content[m.name] = obj{}
		if m.item != nil {
			content[m.name] = obj{"schema": s.refTo(m.item, true)}
			success["description"] = "success; a stream has one event on each line, as JSON, or in the data of each server-sent event"
		}
	}
	if len(content) > 0 {
		success["content"] = content
	}
	out := obj{"default": obj{"$ref": "#/components/responses/Error"}}
	if r.protocol != "" {
		out["default"] = obj{"description": "an error as " + string(r.protocol) + " writes it, or an ErrorBody", "content": jsonContent(obj{"type": "object"})}
	}
	if r.protocol == toolboxProtocol {
		body := []any{s.refTo(toolboxapi.ErrorBody{}, true), s.refTo(wire.ErrorBody{}, true)}
		out["default"].(obj)["content"] = jsonContent(obj{"anyOf": body})
	}
	s.addErrors(out, r)
	out[fmt.Sprint(max(r.status, http.StatusOK))] = success
	if hasParam(r, dryRunQuery) {
		out["200"] = success
	}
	if hasParam(r, lastEventID) {
		out["204"] = obj{"description": "the client has received all events, and none follow"}
	}
	return out
}

// addErrors adds the error codes of a route, by their status.
func (s *schemas) addErrors(out obj, r route) {
	if r.protocol != "" {
		return
	}
	codes := map[int][]errcode.Code{}
	for _, code := range r.errors {
		status := wire.StatusOf(errcode.New(code, ""))
		codes[status] = append(codes[status], code)
	}
	if hasParam(r, ifMatch) {
		codes[http.StatusPreconditionFailed] = []errcode.Code{errcode.Conflict}
	}
	for _, status := range slices.Sorted(maps.Keys(codes)) {
		out[fmt.Sprint(status)] = obj{"description": joinCodes(codes[status]), "content": jsonContent(s.refTo(wire.ErrorBody{}, true))}
	}
}

// hasParam reports whether a route reads a parameter.
func hasParam(r route, wanted parameter) bool {
	return slices.ContainsFunc(r.params, func(p parameter) bool { return p.name == wanted.name })
}

// answerSchema returns the schema of an answer, or of one of several.
func (s *schemas) answerSchema(answer any) any {
	several, ok := answer.(answerOneOf)
	if !ok {
		return s.refTo(answer, true)
	}
	var list []any
	for _, one := range several {
		list = append(list, s.refTo(one, true))
	}
	return obj{"anyOf": list}
}

func jsonContent(schema any) obj { return obj{"application/json": obj{"schema": schema}} }

func joinCodes(list []errcode.Code) string {
	names := make([]string, len(list))
	for i, code := range list {
		names[i] = string(code)
	}
	return strings.Join(names, ", ")
}
