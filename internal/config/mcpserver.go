package config

import (
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
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

	Command string                    // a program name, or a path if it contains a slash
	Args    []string                  // of Command
	Env     map[string]yamldoc.Secret // of Command
	Dir     string                    // working directory of Command; the default is the document's directory

	URL     string                    // http or https
	Headers map[string]yamldoc.Secret // of requests to URL

	OAuth     *ServerOAuth   `json:",omitzero"` // how connections to URL are authorized; nil is not
	PerCaller bool           `json:",omitzero"` // each call has the token of the person for whom it is made; requires OAuth
	Exchange  *TokenExchange `json:",omitzero"` // how persons get tokens; nil: they log in

	Revision string `json:",omitzero"` // the newest revision of the protocol to speak; "" is the newest that is known

	Relay   []string `json:",omitzero"` // what it may ask clients for, besides persons: sampling, roots, and logging
	Prefix  *string  // of the names of its tools; nil is not set
	Pin     bool     // tool definitions need to be accepted before they are active; true by default
	Trusted bool     // the server's annotations of its tools are believed
	Timeout time.Duration
	Labels  toolboxfile.Labels `json:",omitzero"` // of its tools that have none of their own
	Pos     yamldoc.Pos
}

// Limits of a server's document.
const (
	maxCallTime   = time.Hour
	maxToolPrefix = 64
)

// readMCPServer reads a document of kind mcpServer.
func readMCPServer(it item) {
	it.DeclareItem()
	s := MCPServer{Name: it.Name, Pin: true, Pos: it.Pos}
	bearer := yamldoc.Secret("")
	it.ReadFields(yamldoc.MergeFields(toolboxfile.LabelFields(it.Item, &s.Labels), yamldoc.Fields{
		"description": yamldoc.TextField(&s.Description),
		"command":     programField(&s.Command),
		"args":        yamldoc.TextList(&s.Args),
		"env":         yamldoc.SecretMap(&s.Env, checkVariableName),
		"dir":         pathField(&s.Dir),
		"url":         yamldoc.FileAllowed(yamldoc.ServerURL(&s.URL)),
		"headers":     yamldoc.HeaderMap(&s.Headers),
		"auth":        yamldoc.MappingField(yamldoc.Fields{"bearer": yamldoc.RequiredSecret(&bearer), "oauth": oauthField(&s.OAuth)}),
		"credentials": yamldoc.MappingField(yamldoc.Fields{"per": perCallerField(&s.PerCaller), "exchange": exchangeField(&s.Exchange)}),
		"revision":    yamldoc.OneOfField(&s.Revision, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"),
		"relay":       relayField(&s.Relay),
		"prefix":      toolPrefix(&s.Prefix),
		"pin":         yamldoc.BoolField(&s.Pin),
		"trusted":     yamldoc.BoolField(&s.Trusted),
		"timeout":     yamldoc.DurationField(&s.Timeout, maxCallTime),
	}))
	it.r.toolbox.SetServerLabels(s.Name, s.Labels)
	it.requireOneOf("command", "url")
	it.onlyWith("url", "headers", "auth", "credentials")
	it.onlyWith("command", "args", "env", "dir")
	s.checkEffect(it)
	s.checkOAuth(it)
	if bearer != "" {
		s.addBearer(it, bearer)
	}
	if s.Dir == "" {
		s.Dir = it.RelativePath(".")
	}
	it.r.config.MCPServers = append(it.r.config.MCPServers, s)
}

// relayField reads what a server may ask clients for.
func relayField(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		yamldoc.TextList(to)(v)
		for _, word := range *to {
			if word != "sampling" && word != "roots" && word != "logging" {
				v.AddError("has an unknown word", "use sampling, roots and logging")
				return
			}
		}
	}
}

// checkEffect rejects the effect readOnly for all tools of a server that may add tools at any
// time. A call of such a tool would be repeated, and would run beside others, whatever the
// tool does.
func (s *MCPServer) checkEffect(it item) {
	at, ok := it.FindField("effect")
	if ok && s.Labels.Effect == tool.ReadOnly.String() && !s.Pin && !s.Trusted {
		at.AddError("cannot be readOnly for all tools, because pin is false and the server may add tools",
			"set pin or trusted to true, or name the tools in documents of kind tool with of: "+s.Name+"/TOOL")
	}
}

// addBearer adds the Authorization header for a bearer token.
func (s *MCPServer) addBearer(it item, bearer yamldoc.Secret) {
	if _, ok := s.Headers["Authorization"]; ok {
		it.MissingField("auth").AddError("cannot be combined with the header Authorization", "leave one out")
		return
	}
	headers := map[string]yamldoc.Secret{"Authorization": "Bearer " + bearer}
	for name, value := range s.Headers {
		headers[name] = value
	}
	s.Headers = headers
}

// requireOneOf requires exactly one of two fields.
func (it item) requireOneOf(a, b string) {
	_, hasA := it.FindField(a)
	at, hasB := it.FindField(b)
	switch {
	case !hasA && !hasB:
		it.MissingField(a).AddError("is missing", "a server has either "+a+" or "+b)
	case hasA && hasB:
		at.AddError("cannot be combined with "+a, "a server has either "+a+" or "+b)
	}
}

// onlyWith rejects fields if the field with is absent.
func (it item) onlyWith(with string, fields ...string) {
	if _, ok := it.FindField(with); ok {
		return
	}
	for _, name := range fields {
		if at, ok := it.FindField(name); ok {
			at.AddRedactedError("requires "+with+", which is missing", "")
		}
	}
}

// programField reads the name of a program, or the path of one relative to the
// document.
func programField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		name, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if strings.ContainsRune(name, '/') {
			name = v.RelativePath(name)
		}
		*to = name
	}
}

// pathField reads a path, relative to the document.
func pathField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if path, ok := v.ReadNonEmpty(); ok {
			*to = v.RelativePath(path)
		}
	}
}

// checkVariableName checks the name of an environment variable.
func checkVariableName(name string) (string, string) {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return "", "is not a valid variable name"
	}
	return name, ""
}

// toolPrefix reads the prefix of tool names; "" adds none.
func toolPrefix(to **string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadText()
		if !ok {
			return
		}
		if len(text) > maxToolPrefix || strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
		}) {
			v.AddError(yamldoc.QuoteText(text)+" is not a valid prefix of a tool name", "ASCII letters, digits, '_', '.' and '-', at most 64")
			return
		}
		*to = &text
	}
}
