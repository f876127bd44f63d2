package config

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// MCPServer is a document of kind mcpServer: an MCP server whose tools become a
// tool group. It is either a program to run or a URL.
//
//	kind: mcpServer
//	name: web
//	url: https://mcp.example.com/mcp
//	auth: {bearer: "${WEB_TOKEN}"}
//	prefix: web_
type MCPServer struct {
	Name        string
	Description string // of the tool group; "" is not set

	Command string            // a program name, or a path if it contains a slash
	Args    []string          // of Command
	Env     map[string]Secret // of Command
	Dir     string            // working directory of Command; the default is the document's directory

	URL     string            // http or https
	Headers map[string]Secret // of requests to URL

	Prefix  *string // of the names of its tools; nil is not set
	Pin     bool    // tool definitions need to be accepted before they are active; true by default
	Trusted bool    // the server's annotations of its tools are believed
	Timeout time.Duration
	Pos     Pos
}

// Limits of a server's document.
const (
	maxCallTime   = time.Hour
	maxArguments  = 1000
	maxToolPrefix = 64
)

// readMCPServer reads a document of kind mcpServer.
func readMCPServer(it docItem) {
	it.declare()
	s := MCPServer{Name: it.name, Pin: true, Pos: it.pos}
	bearer := Secret("")
	it.fields(
		field{"description", textField(&s.Description)},
		field{"command", programField(&s.Command)},
		field{"args", textList(&s.Args)},
		field{"env", secretMap(&s.Env, variableName)},
		field{"dir", pathField(&s.Dir)},
		field{"url", serverURL(&s.URL)},
		field{"headers", secretMap(&s.Headers, headerName)},
		field{"auth", mappingField(field{"bearer", requiredSecret(&bearer)})},
		field{"prefix", toolPrefix(&s.Prefix)},
		field{"pin", boolField(&s.Pin)},
		field{"trusted", boolField(&s.Trusted)},
		field{"timeout", durationField(&s.Timeout, maxCallTime)},
	)
	it.requireOneOf("command", "url")
	it.onlyWith("url", "headers", "auth")
	it.onlyWith("command", "args", "env", "dir")
	if bearer != "" {
		s.authorize(it, bearer)
	}
	if s.Dir == "" {
		s.Dir = it.relativePath(".")
	}
	it.doc.config.MCPServers = append(it.doc.config.MCPServers, s)
}

// authorize adds the Authorization header for a bearer token.
func (s *MCPServer) authorize(it docItem, bearer Secret) {
	if _, ok := s.Headers["Authorization"]; ok {
		it.missing("auth").fail("cannot be combined with the header Authorization", "leave one out")
		return
	}
	headers := map[string]Secret{"Authorization": "Bearer " + bearer}
	for name, value := range s.Headers {
		headers[name] = value
	}
	s.Headers = headers
}

// requireOneOf requires exactly one of two fields.
func (it docItem) requireOneOf(a, b string) {
	_, hasA := it.child(a)
	at, hasB := it.child(b)
	switch {
	case !hasA && !hasB:
		it.missing(a).fail("is missing", "a server has either "+a+" or "+b)
	case hasA && hasB:
		at.fail("cannot be combined with "+a, "a server has either "+a+" or "+b)
	}
}

// onlyWith rejects fields if the field with is absent.
func (it docItem) onlyWith(with string, fields ...string) {
	if _, ok := it.child(with); ok {
		return
	}
	for _, name := range fields {
		if at, ok := it.child(name); ok {
			at.failRedacted("requires "+with+", which is missing", "")
		}
	}
}

// programField reads the name of a program, or the path of one relative to the
// document.
func programField(to *string) func(value) {
	return func(v value) {
		name, ok := v.nonEmpty()
		if !ok {
			return
		}
		if strings.ContainsRune(name, '/') {
			name = v.relativePath(name)
		}
		*to = name
	}
}

// pathField reads a path, relative to the document.
func pathField(to *string) func(value) {
	return func(v value) {
		if path, ok := v.nonEmpty(); ok {
			*to = v.relativePath(path)
		}
	}
}

// relativePath returns a path that the document may have given relative to itself.
// The result contains a slash, so that it is never looked up in PATH.
func (v value) relativePath(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(v.doc.src.path), path)
	}
	if path != "." && !strings.ContainsRune(path, '/') {
		path = "./" + path
	}
	return path
}

// textList reads a list of texts.
func textList(to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of texts", "for example [--root, /srv]")
			return
		}
		for i, item := range v.items() {
			if i >= maxArguments {
				v.fail("has more than 1000 entries", "")
				return
			}
			if word, ok := item.text(); ok {
				*to = append(*to, word)
			}
		}
	}
}

// secretMap reads a mapping of names to secret texts. check returns the canonical
// name, or the problem with a name. Its errors have no excerpts: the values may be
// in clear text.
func secretMap(to *map[string]Secret, check func(string) (string, string)) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failRedacted("must be a mapping of names to texts", "")
			return
		}
		all := map[string]Secret{}
		for key, val := range v.pairs() {
			name, problem := check(key.node.Value)
			if _, ok := all[name]; problem == "" && ok {
				problem = "is a duplicate"
			}
			if problem != "" {
				key.failRedacted(problem, "")
				continue
			}
			if val.node.Kind != yaml.ScalarNode {
				val.failRedacted("must be text", "")
				continue
			}
			if word, ok := val.text(); ok {
				all[name] = Secret(word)
			}
		}
		*to = all
	}
}

// variableName checks the name of an environment variable.
func variableName(name string) (string, string) {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return "", "is not a valid variable name"
	}
	return name, ""
}

// headerName checks the name of an HTTP header and returns its canonical form.
func headerName(name string) (string, string) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
		return "", "is not a valid header name"
	}
	return http.CanonicalHeaderKey(name), ""
}

// requiredSecret reads a secret as secretField does, but rejects a variable that
// is not set.
func requiredSecret(to *Secret) func(value) {
	return func(v value) {
		var from string
		secretField(to, &from)(v)
		if from != "" && *to == "" {
			v.failRedacted("variable "+clip(from)+" is not set", "set it")
		}
	}
}

// serverURL reads an http or https URL without password and fragment.
func serverURL(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			v.failRedacted("must be an address", "for example https://mcp.example.com/mcp")
		case u.User != nil || u.Fragment != "":
			v.failRedacted("contains a password or a fragment", "a token is written as auth: {bearer: ${TOKEN}}")
		default:
			*to = text
		}
	}
}

// toolPrefix reads the prefix of tool names; "" adds none.
func toolPrefix(to **string) func(value) {
	return func(v value) {
		text, ok := v.text()
		if !ok {
			return
		}
		if len(text) > maxToolPrefix || strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
		}) {
			v.fail(quote(text)+" is not a valid prefix of a tool name", "ASCII letters, digits, '_', '.' and '-', at most 64")
			return
		}
		*to = &text
	}
}
