package app

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// kindServer is the kind of document that is an MCP server; its servers are
// modules of this type.
const kindServer = "mcpServer"

// ModulesOf lists the modules of a configuration: documents of kind module, MCP
// servers, sources, tool services and the declared resources. The Settings of all but the first only serve to detect a
// change.
func ModulesOf(cfg *config.Config) []config.Module {
	list := slices.Clone(cfg.Modules)
	for _, s := range cfg.MCPServers {
		list = append(list, config.Module{Name: s.Name, Type: kindServer, Settings: serverSettings(s), Labels: s.Labels, Pos: s.Pos, TypePos: s.Pos})
	}
	for i := range list {
		list[i].ToolsDigest = toolsDigest(cfg, list[i])
	}
	return slices.Concat(list, sourceModules(cfg), serviceModules(cfg), resourceModules(cfg))
}

// serverSettings encodes the declaration of a server without its position, for
// comparison. The result contains secrets and must not be logged.
func serverSettings(s config.MCPServer) json.RawMessage {
	s.Pos, s.Labels = yamldoc.Pos{}, toolboxfile.Labels{} // toolsDigest has those that the module needs
	secret, key := clientSecrets(s)
	text, _ := json.Marshal(struct { // texts always marshal
		config.MCPServer
		Env, Headers            map[string]string
		ClientSecret, ClientKey string
	}{s, revealSecrets(s.Env), revealSecrets(s.Headers), secret, key})
	return text
}

func revealSecrets(secrets map[string]yamldoc.Secret) map[string]string {
	out := make(map[string]string, len(secrets))
	for name, value := range secrets {
		out[name] = string(value)
	}
	return out
}

// newServerModule constructs the module of an MCP server without connecting it.
func (a *App) newServerModule(cfg *config.Config, m config.Module) (modules.Module, *yamldoc.Error) {
	at := slices.IndexFunc(cfg.MCPServers, func(s config.MCPServer) bool { return s.Name == m.Name })
	if at < 0 {
		return nil, cfg.ErrorAt(m.TypePos, "type", "is not a module type", "write kind: "+kindServer)
	}
	if slices.ContainsFunc(cfg.Modules, func(other config.Module) bool { return other.Name == m.Name }) {
		return nil, cfg.ErrorAt(m.Pos, "name", "module "+strconv.Quote(m.Name)+" has the same name", "choose another")
	}
	s := cfg.MCPServers[at]
	program, err := serverCommand(s)
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, kindServer, err.Error(), "")
	}
	auth, err := a.serverAuth(s)
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, kindServer, faultText(err), "")
	}
	made, err := mcpclient.New(mcpclient.Config{
		Name: s.Name, Description: s.Description, Command: program,
		URL: s.URL, Headers: revealSecrets(s.Headers), Auth: auth, SubjectOf: a.subjectOf, Revision: s.Revision,
		Relay:  mcpclient.Relay{Sampling: slices.Contains(s.Relay, "sampling"), Roots: slices.Contains(s.Relay, "roots"), Logging: slices.Contains(s.Relay, "logging")},
		Prefix: s.Prefix, DisablePinning: !s.Pin, Trusted: s.Trusted, Timeout: s.Timeout,
		NoConnect: a.neverConnects, Host: a.moduleHost(s.Name), Pins: a.pins, NameTaken: a.nameTaken(s.Name),
		Labels: labelsOf(cfg, m), NamedTools: namedTools(cfg, s.Name),
	})
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, kindServer, faultText(err), "")
	}
	return made, nil
}

// serverCommand returns the program of a server with absolute paths.
func serverCommand(s config.MCPServer) (c mcpclient.Command, err error) {
	if s.Command == "" {
		return c, nil
	}
	c = mcpclient.Command{Path: s.Command, Args: s.Args, Env: environ(s.Env)}
	if strings.ContainsRune(c.Path, '/') {
		if c.Path, err = filepath.Abs(c.Path); err != nil {
			return c, err
		}
	}
	c.Dir, err = filepath.Abs(s.Dir)
	return c, err
}

func environ(env map[string]yamldoc.Secret) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+string(env[name]))
	}
	return list
}

// nameTaken returns a function that reports whether a tool name belongs to another
// owner than this module.
func (a *App) nameTaken(module string) func(string) bool {
	owner := modules.OwnerOf(module)
	return func(name string) bool {
		handle, ok := a.groups.CurrentSnapshot().LookupTool(name)
		return ok && handle.Owner != owner
	}
}

// Limits of the stderr output that an error of a server's program quotes.
const (
	maxStderrLines = 10
	maxStderrBytes = 2 << 10
)

// stderrTail returns the last lines that the program of a server wrote to stderr, for
// the operator; "" if there are none.
func stderrTail(err error) string {
	e, ok := errors.AsType[*mcpclient.ServerError](err)
	if !ok || e.Stderr == "" {
		return ""
	}
	text := strings.ToValidUTF8(e.Stderr[max(0, len(e.Stderr)-maxStderrBytes):], "")
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-maxStderrLines):]
	return "its stderr ends:\n    " + strings.Join(lines, "\n    ")
}
