package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// asClient is the variable that says that the test program is the client of a
// scenario of the conformance suite, whose server's address is its last
// argument. It names a file: the suite starts all clients at once, and they
// take turns, so that none runs out of time for the others.
const asClient = "ROLECALL_E2E_CLIENT"

// clientMain loads the server as a module of a runtime, and as a caller in a
// role with its group makes the calls that the scenario wants. It gives the
// status of the program; the suite judges what the server saw.
func clientMain(turns, url string) int {
	turn, err := os.OpenFile(turns, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		defer turn.Close()
		err = syscall.Flock(int(turn.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		err = clientTurn(url)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func clientTurn(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	c, err := newGuest(ctx, url)
	if err == nil {
		err = c.play(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"))
	}
	if c != nil {
		err = errors.Join(err, c.close())
	}
	return err
}

// guest is a runtime with one module and one role.
type guest struct {
	rt     *runtime.Runtime
	loader *modules.Loader
	store  *persist.Store
	dir    string
	by     identity.Principal
}

func newGuest(ctx context.Context, url string) (*guest, error) {
	dir, err := os.MkdirTemp("", "rolecall-client-")
	if err != nil {
		return nil, err
	}
	g := &guest{dir: dir}
	if g.store, err = persist.Open(dir); err != nil {
		return g, err
	}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	g.rt, err = runtime.New(runtime.Config{Store: g.store, Groups: groups,
		Model: func(string) (model.Model, error) { return nil, errors.New("nobody thinks here") }})
	if err != nil {
		return g, err
	}
	g.loader = modules.NewLoader(g.rt)
	log, prefix := slog.New(slog.NewTextHandler(os.Stderr, nil)), ""
	server, err := mcpclient.New(mcpclient.Config{Name: "suite", URL: url, Prefix: &prefix, Pins: modules.NewPins(g.rt.OwnerStore()),
		Host: modules.Host{Log: log, Store: g.rt.OwnerStore(), Changed: func() { g.loader.NotifyChanged("suite") }}})
	if err != nil {
		return g, err
	}
	if err := g.loader.LoadModule(ctx, server); err != nil {
		return g, err
	}
	use := toolgroups.Of("suite")
	role, err := g.rt.CreateRole(ctx, tool.Call{By: identity.ByOperator("suite")}, org.RoleSpec{Name: "guest", Use: &use})
	g.by = identity.ByCaller("suite", role.ID)
	return g, err
}

func (g *guest) close() error {
	var errs []error
	if g.rt != nil {
		errs = append(errs, g.rt.Close())
	}
	if g.loader != nil {
		errs = append(errs, g.loader.Close(context.Background()))
	}
	if g.store != nil {
		errs = append(errs, g.store.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(g.dir))...)
}

// toolCall is a call that a scenario wants to see.
type toolCall struct {
	Name      string
	Arguments json.RawMessage
}

// play makes the calls of a scenario. A call that the gate or the server
// refuses is one the suite may want to be refused.
func (g *guest) play(ctx context.Context, scenario string) error {
	calls, err := g.calls(scenario)
	if err != nil {
		return err
	}
	for _, c := range calls {
		a, err := g.rt.InvokeTool(ctx, g.by, c.Name, c.Arguments)
		if err != nil {
			return fmt.Errorf("call %s: %w", c.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %v %s\n", c.Name, a.Err, a.Result.JSON())
	}
	return nil
}

// calls lists those that the suite asks for; else each tool there is, once,
// with arguments that it takes.
func (g *guest) calls(scenario string) ([]toolCall, error) {
	var asked struct{ ToolCalls []toolCall }
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &asked); err != nil {
			return nil, fmt.Errorf("the context of %s: %w", scenario, err)
		}
	}
	if len(asked.ToolCalls) > 0 {
		return withoutNulls(asked.ToolCalls)
	}
	schemas := map[string]json.RawMessage{}
	var list []toolCall
	for _, d := range g.rt.Gate().Subject(g.by).ListableTools() {
		schemas[d.Name] = d.Input
		args, err := argsFor(d.Input, schemas["json_schema_2020_12_tool"])
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", d.Name, err)
		}
		list = append(list, toolCall{d.Name, args})
	}
	return list, nil
}

// argsFor gives each argument that is required a value of its type; one that is
// to be a schema, the schema.
func argsFor(input, schema json.RawMessage) (json.RawMessage, error) {
	var rules struct {
		Required   []string
		Properties map[string]struct{ Type string }
	}
	if err := json.Unmarshal(input, &rules); err != nil {
		return nil, err
	}
	args := map[string]any{}
	for _, name := range rules.Required {
		switch rules.Properties[name].Type {
		case "number", "integer":
			args[name] = 5
		case "object":
			args[name] = schema
		default:
			args[name] = "us-west1"
		}
	}
	return json.Marshal(args)
}

// withoutNulls leaves out arguments that are null: the gate takes none where a
// schema wants something else.
func withoutNulls(calls []toolCall) ([]toolCall, error) {
	for i, c := range calls {
		var args map[string]any
		if err := json.Unmarshal(c.Arguments, &args); err != nil {
			return nil, err
		}
		maps.DeleteFunc(args, func(_ string, value any) bool { return value == nil })
		text, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		calls[i].Arguments = text
	}
	return calls, nil
}
