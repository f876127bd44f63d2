package app

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
)

// kindServer is the kind of document that is an MCP server; its servers are
// modules of this type.
const kindServer = "mcpServer"

// ModulesOf lists what a configuration brings as modules: those it calls so,
// its MCP servers, and its sources. The settings of a server are there to be
// compared alone.
func ModulesOf(cfg *config.Config) []config.Module {
	list := slices.Clone(cfg.Modules)
	for _, s := range cfg.MCPServers {
		list = append(list, config.Module{Name: s.Name, Type: kindServer, Settings: printServer(s), Pos: s.Pos, TypePos: s.Pos})
	}
	return append(list, sourcesOf(cfg)...)
}

// printServer writes all that a document says of a server but where it says it.
// It holds secrets.
func printServer(s config.MCPServer) json.RawMessage {
	s.Pos = config.Pos{}
	text, _ := json.Marshal(struct { // texts always marshal
		config.MCPServer
		Env, Headers map[string]string
	}{s, plainText(s.Env), plainText(s.Headers)})
	return text
}

func plainText(secrets map[string]config.Secret) map[string]string {
	out := make(map[string]string, len(secrets))
	for name, value := range secrets {
		out[name] = string(value)
	}
	return out
}

// makeServer constructs the module of an MCP server; nothing of it works yet.
func (a *App) makeServer(cfg *config.Config, m config.Module) (modules.Module, *config.Error) {
	at := slices.IndexFunc(cfg.MCPServers, func(s config.MCPServer) bool { return s.Name == m.Name })
	if at < 0 {
		return nil, cfg.Fault(m.TypePos, "type", "is no type of a module", "write kind: "+kindServer)
	}
	if slices.ContainsFunc(cfg.Modules, func(other config.Module) bool { return other.Name == m.Name }) {
		return nil, cfg.Fault(m.Pos, "name", "module "+strconv.Quote(m.Name)+" has the same name", "choose another")
	}
	s := cfg.MCPServers[at]
	program, err := commandOf(s)
	if err != nil {
		return nil, cfg.Fault(m.Pos, kindServer, err.Error(), "")
	}
	made, err := mcpclient.New(mcpclient.Config{
		Name: s.Name, Description: s.Description, Command: program,
		URL: s.URL, Headers: plainText(s.Headers),
		Prefix: s.Prefix, DisablePinning: !s.Pin, Trusted: s.Trusted, Timeout: s.Timeout,
		NoConnect: a.readOnly, Host: a.host(s.Name), Pins: a.pins, NameTaken: a.takenFrom(s.Name),
	})
	if err != nil {
		return nil, cfg.Fault(m.Pos, kindServer, errcode.Message(err), "")
	}
	return made, nil
}

// commandOf gives the program of a server, whose paths hold wherever it runs.
func commandOf(s config.MCPServer) (c mcpclient.Command, err error) {
	if s.Command == "" {
		return c, nil
	}
	c = mcpclient.Command{Path: s.Command, Args: s.Args, Env: environmentOf(s.Env)}
	if strings.ContainsRune(c.Path, '/') {
		if c.Path, err = filepath.Abs(c.Path); err != nil {
			return c, err
		}
	}
	c.Dir, err = filepath.Abs(s.Dir)
	return c, err
}

func environmentOf(env map[string]config.Secret) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+string(env[name]))
	}
	return list
}

// takenFrom says of the name of a tool whether another owner than this module
// has it.
func (a *App) takenFrom(module string) func(string) bool {
	owner := modules.Owner(module)
	return func(name string) bool {
		handle, ok := a.groups.Snapshot().Lookup(name)
		return ok && handle.Owner != owner
	}
}

// How much the operator is shown of what the program of a server wrote.
const (
	maxStderrLines = 10
	maxStderrBytes = 2 << 10
)

// stderrOf gives the last lines that the program of a server wrote, for the
// operator; "" when it wrote none.
func stderrOf(err error) string {
	e, ok := errors.AsType[*mcpclient.ServerError](err)
	if !ok || e.Stderr == "" {
		return ""
	}
	text := strings.ToValidUTF8(e.Stderr[max(0, len(e.Stderr)-maxStderrBytes):], "")
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-maxStderrLines):]
	return "its stderr ends:\n    " + strings.Join(lines, "\n    ")
}
