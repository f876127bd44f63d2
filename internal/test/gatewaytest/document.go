package gatewaytest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/gateway"
)

// WithOpenAPICheck returns a handler that checks each answer of the API against its OpenAPI
// document: its status, its shape, and the code of an error. It also checks the bodies of
// requests that the API accepts. Answers may have no field that the document lacks.
func WithOpenAPICheck(t testing.TB, api http.Handler) http.Handler {
	if _, fuzzing := t.(*testing.F); fuzzing { // it cannot report errors of its inputs
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(bytes.Buffer)
		if r.Body != nil {
			r.Body = teeBody{io.TeeReader(r.Body, body), r.Body}
		}
		seen := &seenAnswer{ResponseWriter: w, status: http.StatusOK}
		api.ServeHTTP(seen, r) // not checked if it panics
		if seen.broken {
			return
		}
		if err := apiDocument().check(r, body.Bytes(), seen); err != nil {
			t.Errorf("%s %s, answered with %d, differs from the document: %v\n%.600s", r.Method, r.URL, seen.status, err, seen.body.String())
		}
	})
}

// teeBody is the body of a request of which a copy is kept.
type teeBody struct {
	io.Reader
	io.Closer
}

// seenAnswer keeps a copy of an answer.
type seenAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	broken bool // the client does not read: the copy is not whole
}

// WriteHeader implements http.ResponseWriter.
func (a *seenAnswer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *seenAnswer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.body.Write(p[:n])
	a.broken = a.broken || err != nil
	return n, err
}

// Unwrap is for http.ResponseController.
func (a *seenAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// document is the document of the API, and the schemas in it that were compiled.
type document struct {
	text     gjson.Result
	mu       sync.Mutex // guards compiler and compiled
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// apiDocument returns the document of the API. Its schemas allow only the fields that they
// name.
var apiDocument = sync.OnceValue(func() *document {
	text := gateway.OpenAPIDocument()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	closeObjects(v)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", v); err != nil {
		panic(err)
	}
	return &document{text: gjson.ParseBytes(text), compiler: c, compiled: map[string]*jsonschema.Schema{}}
})

// closeObjects forbids further properties in all schemas that name properties.
func closeObjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			closeObjects(item)
		}
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, item := range v {
			closeObjects(item)
		}
	}
}

// check checks an answer. Those of other protocols, and what is no route, are only errors.
func (d *document) check(r *http.Request, body []byte, seen *seenAnswer) error {
	method, path, _ := strings.Cut(r.Pattern, " ")
	path = strings.ReplaceAll(strings.TrimSuffix(path, "{$}"), "...}", "}")
	at := []string{"paths", path, strings.ToLower(method)}
	operation := d.text.Get(gjsonPath(at))
	common := codes(d.text.Get("components.responses.Error"))
	switch {
	case r.Method == http.MethodHead, seen.status/100 == 3: // the router redirects to paths without empty segments
		return nil
	case !operation.Exists():
		return d.checkError(seen, append(common, "route_not_found", "method_not_allowed"))
	case strings.Contains(operation.Get("description").Str, "shapes are those of"):
		return nil
	case seen.status >= 300:
		return d.checkError(seen, append(common, codes(operation)...))
	}
	if content := operation.Get("requestBody"); content.Exists() && len(body) > 0 {
		if err := d.validate(append(at, "requestBody", "content", "application/json", "schema"), body); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	return d.checkSuccess(append(at, "responses", fmt.Sprint(seen.status)), seen)
}

// checkSuccess checks an answer without an error. Each item of a stream is checked.
func (d *document) checkSuccess(at []string, seen *seenAnswer) error {
	answer := d.text.Get(gjsonPath(at))
	if !answer.Exists() {
		return errors.New("the status is not in it")
	}
	if seen.status == http.StatusNoContent {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(seen.Header().Get("Content-Type"))
	at = append(at, "content", kind)
	if !d.text.Get(gjsonPath(at)).Exists() {
		return fmt.Errorf("the media type %q is not in it", kind)
	}
	at = append(at, "schema")
	switch {
	case kind == "application/json":
		return d.validate(at, seen.body.Bytes())
	case !d.text.Get(gjsonPath(at)).Exists():
		return nil
	}
	for line := range strings.Lines(seen.body.String()) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		if line == "" || strings.HasPrefix(line, "id: ") {
			continue
		}
		if err := d.validate(at, []byte(line)); err != nil {
			return err
		}
	}
	return nil
}

// checkError checks the body of an error, and its code.
func (d *document) checkError(seen *seenAnswer, known []string) error {
	if err := d.validate([]string{"components", "schemas", "ErrorBody"}, seen.body.Bytes()); err != nil {
		return err
	}
	if code := gjson.GetBytes(seen.body.Bytes(), "error.code").Str; !slices.Contains(known, code) {
		return fmt.Errorf("the code %s is not in it", code)
	}
	return nil
}

// codes lists the error codes of an operation or a response.
func codes(of gjson.Result) (list []string) {
	for _, code := range of.Get("x-error-codes").Array() {
		list = append(list, code.Str)
	}
	return list
}

// validate checks JSON against the schema at a place of the document.
func (d *document) validate(at []string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	schema, err := d.schema(at)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// schema returns the schema at a place of the document.
func (d *document) schema(at []string) (*jsonschema.Schema, error) {
	var pointer strings.Builder
	for _, name := range at {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if schema := d.compiled[pointer.String()]; schema != nil {
		return schema, nil
	}
	schema, err := d.compiler.Compile("openapi.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer.String()))
	if err == nil {
		d.compiled[pointer.String()] = schema
	}
	return schema, err
}

// gjsonPath returns the path of gjson for names.
func gjsonPath(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = gjson.Escape(name)
	}
	return strings.Join(escaped, ".")
}
