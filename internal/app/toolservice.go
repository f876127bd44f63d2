package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/tool"
)

// kindService is the document kind of a tool service, and the type of its module.
const kindService = "toolService"

// serviceModules lists the tool services of a configuration as modules. Their Settings are a
// digest of the service, its broker and its tools, which only serves to detect a change.
func serviceModules(cfg *config.Config) []config.Module {
	list, prints := make([]config.Module, len(cfg.ToolServices)), map[string][]string{}
	for _, t := range cfg.Tools {
		if t.Service != nil {
			prints[t.Service.Service] = append(prints[t.Service.Service], t.Name, t.Fingerprint)
		}
	}
	for i, s := range cfg.ToolServices {
		b, _ := findBroker(cfg, s.Broker)
		at := s.Pos
		s.Pos = yamldoc.Pos{}
		text, _ := json.Marshal([]any{s, brokerFingerprint(b), prints[s.Name]}) // texts always marshal
		list[i] = config.Module{Name: s.Name, Type: kindService, Pos: at, TypePos: at, Settings: fmt.Appendf(nil, `"%x"`, sha256.Sum256(text))}
	}
	return list
}

// serviceTools lists the tools of a service. It leaves out tools whose arguments could not be
// read; loading has reported them.
func serviceTools(cfg *config.Config, service string) (list []toolservice.Tool) {
	untyped := slices.ContainsFunc(cfg.ToolServices, func(s toolboxfile.ToolService) bool { return s.Name == service && s.UntypedArguments })
	for _, t := range cfg.Tools {
		if t.Service != nil && t.Service.Service == service && t.Parameters != nil {
			list = append(list, toolservice.Tool{Definition: serviceDefinition(t, untyped), Config: t.Service.Values})
		}
	}
	return list
}

// serviceDefinition returns the definition of a tool of a service. Loading has checked the effect
// class.
func serviceDefinition(t toolboxfile.DeclaredTool, untyped bool) tool.Definition {
	d := tool.Definition{Name: t.Name, Description: t.Description, Input: t.Parameters.Schema(), Flags: t.Flags, State: t.NextState, States: t.InStates}
	_ = d.Effect.UnmarshalText([]byte(t.Effect)) // an unknown class is Mutating
	if untyped {
		d.Shown, d.Input = d.Input, json.RawMessage(`{"type":"object"}`)
	} else {
		d.Input = closedSchema(d.Input)
	}
	return d
}

// closedSchema returns the schema of an object that has no other members than those it names.
// A service gets the arguments as the model wrote them, so the gate must reject the others.
func closedSchema(schema json.RawMessage) json.RawMessage {
	members := bytes.TrimSuffix(bytes.TrimSpace(schema), []byte("}"))
	return append(bytes.Clone(members), `,"additionalProperties":false}`...)
}

// findBroker returns the broker with a name.
func findBroker(cfg *config.Config, name string) (config.Broker, bool) {
	for _, b := range cfg.Brokers {
		if b.Name == name {
			return b, true
		}
	}
	return config.Broker{}, false
}

// newServiceModule constructs the module of a tool service without connecting it.
func (a *App) newServiceModule(cfg *config.Config, m config.Module) (modules.Module, *yamldoc.Error) {
	at := slices.IndexFunc(cfg.ToolServices, func(s toolboxfile.ToolService) bool { return s.Pos == m.Pos })
	if at < 0 {
		return nil, cfg.ErrorAt(m.TypePos, "type", "is not a module type", "write kind: "+kindService)
	}
	if other, ok := conflictingName(cfg, m); ok {
		return nil, cfg.ErrorAt(m.Pos, "name", other+" has the same name", "choose another")
	}
	s := cfg.ToolServices[at]
	b, ok := findBroker(cfg, s.Broker)
	if !ok {
		b = config.Broker{Name: embeddedBroker, Type: "nats"}
	}
	made, err := toolservice.New(toolservice.Config{
		Service: toolservice.Service{
			ID: s.Name, Request: s.Request, Response: s.Response,
			Timeout: s.Timeout, MaxResponseBytes: s.MaxResponseBytes, MaxConcurrent: s.MaxConcurrent,
		},
		Tools: serviceTools(cfg, s.Name), Keys: a.serviceKeys(s.Name), RoleOf: a.roleOf, Organization: a.organizationID,
		Broker: func() (broker.Driver, func() error, error) { return a.brokers.acquire(b) },
	})
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, kindService, faultText(err), "")
	}
	return made, nil
}

// serviceStates returns the tool services whose state is known, and whether each one is there now.
// These are the services that announce themselves, and declared services of brokers in this process
// that have a port.
func (a *App) serviceStates() map[string]bool {
	states := map[string]bool{}
	for _, service := range a.announcements.registry.Services() {
		states[service] = a.announcements.registry.IsAlive(service)
	}
	active := a.active.Load()
	if active == nil {
		return states
	}
	connected := a.brokers.connectedServices()
	for _, s := range active.config.ToolServices {
		if b, ok := findBroker(active.config, s.Broker); ok && b.URL == "" && b.Listen != "" {
			states[s.Name] = slices.Contains(connected[b.Name], s.Name)
		}
	}
	return states
}

// serviceKeys returns a function that returns the valid keys of a service.
func (a *App) serviceKeys(service string) func() ([]string, error) {
	return func() ([]string, error) { return a.keys.RecentSecrets(keystore.Service, service) }
}

// organizationID returns the id of the organization in call tokens; "" if the keys cannot be read,
// and then no token is signed either.
func (a *App) organizationID() string {
	id, _ := a.keys.Organization()
	return id
}

// roleOf returns the name of the role of an agent or a caller.
func (a *App) roleOf(p identity.Principal) string {
	id := p.Role
	if p.Kind == identity.Agent {
		agent, _ := a.Runtime.Org().AgentByID(p.Agent)
		id = agent.Role
	}
	role, _ := a.Runtime.Org().RoleByID(id)
	return role.Name
}
