package mcpclient

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// Config is what the operator says of one server. Exactly one of Command and
// URL is set.
type Config struct {
	Name        string // of the module, and the id of its group
	Description string // of the group; "" is one that names the server

	Command Command
	URL     string            // of streamable HTTP, http or https
	Headers map[string]string // of every request, secrets among them

	// Prefix comes before the names of the tools; nil is Name and "__".
	Prefix *string
	// DisablePinning offers what the server says, as it says it, at any time.
	DisablePinning bool
	// Trusted believes the server what its tools do to the world.
	Trusted bool
	Timeout time.Duration // of one call; 0 is DefaultTimeout

	// NoConnect never reaches the server: what is known of it is shown.
	NoConnect bool

	Host modules.Host
	Pins *modules.Pins // needed unless Unpinned
	// NameTaken says whether a tool name belongs to somebody else; nil is never.
	NameTaken func(name string) bool
}

// Command is a program that speaks the protocol on its stdin and stdout.
type Command struct {
	Path string // as exec.Command takes it
	Args []string
	Env  []string // NAME=value; beside these it sees PATH, LANG, and a HOME of its own
	Dir  string   // where it runs
}

// DefaultTimeout is how long a call may take.
const DefaultTimeout = 2 * time.Minute

// maxPrefix leaves room for a tool's name.
const maxPrefix = 64

// check completes a configuration. Errors have the code invalid_config.
func (c Config) check() (Config, error) {
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
		return c, errcode.New(errcode.InvalidConfig, "MCP server %q: there is no place to keep what is accepted of it", c.Name)
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Description = cmp.Or(c.Description, "Tools of the MCP server "+c.Name)
	return c, nil
}

func (c Config) checkAddress() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errcode.New(errcode.InvalidConfig, "MCP server %q: the url must be an address, as https://host/mcp, without a password", c.Name)
	}
	for name, value := range c.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n\x00") {
			return errcode.New(errcode.InvalidConfig, "MCP server %q: %.80q is no header", c.Name, http.CanonicalHeaderKey(name))
		}
	}
	return nil
}
