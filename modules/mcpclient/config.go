package mcpclient

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is the operator's configuration of one server. Exactly one of Command and URL
// is set.
type Config struct {
	Name        string // of the module, and the id of its group
	Description string // of the group; "" is a text with the server's name

	Command Command
	URL     string            // of a streamable HTTP endpoint, http or https
	Headers map[string]string // of every request; redacted in what the server sends
	// Auth authorizes connections to URL with OAuth; nil does not.
	Auth *mcpauth.Server
	// SubjectOf returns for whom a call is made, if Auth has PerCaller. It reports false if that is
	// not known; nil does for all calls.
	SubjectOf func(tool.Call) (mcpauth.Subject, bool)

	// Revision is the newest revision of the protocol that the server is offered; "" is the
	// newest that the SDK knows. Servers that ask or log only in a session need one before
	// 2026-07-28.
	Revision string

	// Relay is what the server may ask the client of a call for, besides a person.
	Relay Relay

	// Prefix is put before the names of the tools; nil is Name followed by "__".
	Prefix *string
	// DisablePinning makes every definition active at once, without acceptance.
	DisablePinning bool
	// Trusted takes the effects of the tools from the server's annotations. All tools of
	// other servers are Mutating.
	Trusted bool
	Timeout time.Duration // of one call; 0 is DefaultTimeout
	// RenewAfter is the minimum age at which a connection is renewed. It is renewed if an earlier
	// call without an answer keeps its questions from persons. 0 is a minute.
	RenewAfter time.Duration

	// NoConnect never contacts the server. The module has the accepted tools, and their
	// calls fail.
	NoConnect bool

	Host modules.ModuleHost
	Pins *modules.PinStore // required unless DisablePinning is set
	// NameTaken reports whether a tool name belongs to another owner; nil reports false.
	NameTaken func(name string) bool

	// Labels are what the operator says about the server's tools. They are applied to
	// definitions that are accepted, and change nothing about acceptance.
	Labels modules.Labels
	// NamedTools are further tools, which call tools of the server.
	NamedTools []NamedTool

	fixed   []string         // values that the server is given; set by check
	secrets *redact.Redactor // of fixed; set by check
}

// Command is a program that speaks the protocol on its stdin and stdout.
type Command struct {
	Path string // as for exec.Command
	Args []string
	Env  []string // NAME=value, in addition to PATH, LANG, and a temporary HOME and TMPDIR; redacted in what the program sends
	Dir  string   // its working directory; "" is the directory of this process
}

// NamedTool is a tool with a name and a description of the operator that calls a tool of
// the server. It is in the group NamedGroup of the module. While the server has no accepted
// definition of the tool, its calls fail with tool_unavailable.
type NamedTool struct {
	Name, Description string
	Tool              string // name of the tool at the server
	Label             modules.Label
}

// NamedGroup returns the id of the group of NamedTools of a module.
func NamedGroup(module string) toolgroups.GroupID { return toolgroups.GroupID("mcp-tool/" + module) }

// DefaultTimeout is how long a call may take by default.
const DefaultTimeout = 2 * time.Minute

// maxPrefix is the longest prefix in bytes. Tool names have at most 128.
const maxPrefix = 64

// withDefaults validates a configuration and fills in the defaults. Errors have the code
// invalid_config.
func (c Config) withDefaults() (Config, error) {
	if err := modules.CheckName(c.Name); err != nil {
		return c, err
	}
	if (c.Command.Path == "") == (c.URL == "") {
		return c, errcode.New(errcode.InvalidConfig, "MCP server %q needs one of command and url", c.Name)
	}
	if c.URL != "" {
		if err := c.checkAddress(); err != nil {
			return c, err
		}
	}
	prefix := c.Name + "__"
	c.Prefix = cmp.Or(c.Prefix, &prefix)
	if err := tool.CheckName(*c.Prefix + "a"); err != nil || len(*c.Prefix) > maxPrefix {
		return c, errcode.New(errcode.InvalidConfig, "MCP server %q: prefix %.80q cannot begin the name of a tool: ASCII letters, digits, '_', '.' and '-', at most %d", c.Name, *c.Prefix, maxPrefix)
	}
	if c.Pins == nil && !c.DisablePinning {
		return c, errcode.New(errcode.InvalidConfig, "MCP server %q: pins are required unless pinning is disabled", c.Name)
	}
	if c.Auth != nil && c.URL == "" {
		return c, errcode.New(errcode.InvalidConfig, "MCP server %q: only a server with an url has a login", c.Name)
	}
	c.fixed = c.fixedSecrets()
	c.secrets = redact.New(c.fixed...)
	c.Timeout, c.RenewAfter = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.RenewAfter, time.Minute)
	c.Description = cmp.Or(c.Description, "Tools of the MCP server "+c.Name)
	return c, nil
}

// fixedSecrets returns the secrets that the server gets and may send back. These are the values of
// its environment and of its headers, and the secrets in its arguments and its address.
func (c Config) fixedSecrets() []string {
	secrets := append(redact.HeaderSecrets(c.Headers), redact.URLSecrets(c.URL)...)
	for _, arg := range c.Command.Args {
		secrets = append(secrets, redact.URLSecrets(arg)...)
	}
	for _, variable := range c.Command.Env {
		_, value, _ := strings.Cut(variable, "=")
		secrets = append(secrets, redact.ValueSecrets(value)...)
	}
	return secrets
}

// checkAddress validates URL and Headers.
func (c Config) checkAddress() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errcode.New(errcode.InvalidConfig, "MCP server %q: the url must be an address such as https://host/mcp, without a password", c.Name)
	}
	for name, value := range c.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n\x00") {
			return errcode.New(errcode.InvalidConfig, "MCP server %q: %.80q is not a valid header", c.Name, http.CanonicalHeaderKey(name))
		}
	}
	return nil
}
