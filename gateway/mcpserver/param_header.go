package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/tool"
)

// In revision 2026-07-28 a schema may mark an argument with headerKeyword. Clients repeat the
// argument in a header, for programs between client and server. Such a program decides by the
// header, and the tool acts by the argument. So a call over HTTP in which they differ is
// rejected.

// headerKeyword is the schema keyword that names the header, without paramHeaderPrefix.
const headerKeyword = "x-mcp-header"

// paramHeaderPrefix begins the headers that repeat arguments.
const paramHeaderPrefix = "Mcp-Param-"

// paramHeader is an argument that clients repeat in a header.
type paramHeader struct {
	path   []string // of the argument
	header string   // the whole name
}

// clientSchema returns the schema of a tool that clients see, before its marks are checked.
func clientSchema(d tool.Definition) json.RawMessage {
	if d.Declared != nil {
		return d.Declared.ClientSchema()
	}
	return d.ModelSchema()
}

// paramHeaders returns the marked arguments of a tool. If a mark is not as the protocol requires, there
// are none: clients would leave the tool out. The parameters of a declared tool have no marks.
func paramHeaders(d tool.Definition) []paramHeader {
	if d.Declared != nil {
		return nil
	}
	schema := d.ModelSchema()
	if !mayHaveMarks(schema) {
		return nil
	}
	doc, ok := decodeSchema(schema)
	if !ok {
		return nil
	}
	w := markWalk{names: map[string]bool{}}
	w.properties(doc, nil)
	if w.invalid || countMarks(doc) != len(w.found) {
		return nil
	}
	return w.found
}

// mayHaveMarks reports whether a schema can have headerKeyword, perhaps written with escapes.
func mayHaveMarks(schema json.RawMessage) bool {
	return bytes.Contains(schema, []byte("mcp-header")) || bytes.Contains(schema, []byte(`\u`))
}

// decodeSchema returns a schema as values of encoding/json.
func decodeSchema(schema json.RawMessage) (doc any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	return doc, d.Decode(&doc) == nil
}

// markWalk collects the marks of properties that are reached by properties alone.
type markWalk struct {
	found   []paramHeader
	names   map[string]bool // of the headers found, in lower case
	invalid bool            // a mark is not as the protocol requires
}

// properties collects the marks of the properties of a schema at a path.
func (w *markWalk) properties(schema any, path []string) {
	doc, _ := schema.(map[string]any)
	properties, _ := doc["properties"].(map[string]any)
	for name, property := range properties {
		at := append(slices.Clone(path), name)
		if p, ok := property.(map[string]any); ok {
			if mark, marked := p[headerKeyword]; marked {
				w.add(at, mark, p["type"])
			}
		}
		w.properties(property, at)
	}
}

// add collects one mark.
func (w *markWalk) add(path []string, mark, kind any) {
	name, _ := mark.(string)
	lower := strings.ToLower(name)
	if !isToken(name) || w.names[lower] || kind != "string" && kind != "integer" && kind != "boolean" {
		w.invalid = true
		return
	}
	w.names[lower] = true
	w.found = append(w.found, paramHeader{path, http.CanonicalHeaderKey(paramHeaderPrefix + name)})
}

// isToken reports whether a text is a token of HTTP, of which names of headers consist.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	})
}

// countMarks returns how often headerKeyword is a keyword in a schema.
func countMarks(doc any) (n int) {
	eachSchema(doc, func(schema map[string]any) {
		if _, ok := schema[headerKeyword]; ok {
			n++
		}
	})
	return n
}

// withoutMarks returns a schema without headerKeyword.
func withoutMarks(schema json.RawMessage) json.RawMessage {
	if !mayHaveMarks(schema) {
		return schema
	}
	doc, ok := decodeSchema(schema)
	if !ok { // cannot happen: registration rejects invalid JSON
		return json.RawMessage(`{"type":"object"}`)
	}
	if countMarks(doc) == 0 {
		return schema
	}
	eachSchema(doc, func(schema map[string]any) { delete(schema, headerKeyword) })
	return marshal(doc)
}

// eachSchema calls do for each object of a schema whose keys are keywords, that is, not the names of
// properties.
func eachSchema(doc any, do func(map[string]any)) {
	switch doc := doc.(type) {
	case []any:
		for _, v := range doc {
			eachSchema(v, do)
		}
	case map[string]any:
		do(doc)
		for name, v := range doc {
			properties, ok := v.(map[string]any)
			if name != "properties" || !ok {
				eachSchema(v, do)
				continue
			}
			for _, p := range properties {
				eachSchema(p, do)
			}
		}
	}
}

// paramHeaderMismatch compares the headers of a call with its arguments. It returns how they differ, "" if
// they do not. A tool that the caller is not offered has no headers, whether or not it exists.
func (s *Server) paramHeaderMismatch(sc *clientScope, header http.Header, q *request) string {
	if q.method != methodCallTool || q.invalid != "" {
		return ""
	}
	snapshot := s.rt.GroupManager().CurrentSnapshot()
	h, ok := snapshot.LookupTool(q.name)
	if !ok {
		return ""
	}
	marked := paramHeaders(h.Definition)
	if len(marked) == 0 || sc.endpoint.toolset != "" && !snapshot.InGroups(q.name, sc.endpoint.toolset) || !s.offers(sc, q.name) {
		return ""
	}
	for _, p := range marked {
		if how := p.mismatch(header[p.header], argumentAt(q.args, p.path), q.hasSecureExt); how != "" {
			return "header mismatch: " + p.header + how
		}
	}
	return ""
}

// mismatch returns how the values of the header differ from its argument, "" if they do not. Clients of MCP
// Toolbox do not see the marks, so they may leave the header out. An argument that has no form in a header is left
// to the check of the arguments.
func (p paramHeader) mismatch(values []string, argument gjson.Result, mayOmit bool) string {
	name := strconv.Quote(strings.Join(p.path, "."))
	switch {
	case len(values) == 0 && (mayOmit || !fitsHeader(argument)):
		return ""
	case len(values) == 0:
		return " is missing; send the argument " + name + " in it"
	case len(values) > 1:
		return " is sent more than once"
	}
	text, ok := decodeHeaderText(values[0])
	if !ok || !fitsHeader(argument) || !headerEquals(text, argument) {
		return " differs from the argument " + name
	}
	return ""
}

// argumentAt returns the argument at a path. It copies nothing: the arguments may have any number of values.
func argumentAt(args string, path []string) gjson.Result {
	v := gjson.Parse(args)
	for _, name := range path {
		v = memberOf(v, name)
	}
	return v
}

// memberOf returns a member of an object, whose names differ. It is the zero Result if there is none.
func memberOf(v gjson.Result, name string) (member gjson.Result) {
	if !v.IsObject() {
		return member
	}
	v.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name {
			member = value
		}
		return !member.Exists()
	})
	return member
}

// maxHeaderInteger is the largest integer that every client writes exactly.
const maxHeaderInteger = 1<<53 - 1

// fitsHeader reports whether a header can repeat an argument.
func fitsHeader(v gjson.Result) bool {
	switch v.Type {
	case gjson.String, gjson.True, gjson.False:
		return true
	case gjson.Number:
		return v.Num == math.Trunc(v.Num) && math.Abs(v.Num) <= maxHeaderInteger
	}
	return false
}

// headerEquals reports whether the text of a header repeats an argument that has such a form. Of a number only
// decimal digits do: programs read 1e2, 0x64p0 and 0100 in different ways.
func headerEquals(text string, v gjson.Result) bool {
	if v.Type != gjson.Number {
		return text == v.String()
	}
	whole, fraction, _ := strings.Cut(text, ".")
	return whole == strconv.FormatFloat(v.Num, 'f', -1, 64) && strings.Trim(fraction, "0") == ""
}

// decodeHeaderText returns the value of a header, which may be in base64.
func decodeHeaderText(text string) (string, bool) {
	encoded, begins := strings.CutPrefix(text, "=?base64?")
	encoded, ends := strings.CutSuffix(encoded, "?=")
	if !begins || !ends {
		return text, true
	}
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(data), err == nil && !strings.ContainsAny(encoded, "\r\n")
}
