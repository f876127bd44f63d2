package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
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

// clientEnv names the environment variable that makes the test program the client of a
// conformance scenario. The server's URL is its last argument. The variable contains
// the path of a lock file: the suite starts all clients at once, and the lock makes
// them run one by one, so that none times out.
const clientEnv = "ROLECALL_E2E_CLIENT"

// clientMain loads the server as a module of a runtime. Then, as a caller in a role
// with the module's group, it makes the calls of the scenario. It returns the exit
// status; the suite checks what the server saw.
func clientMain(path, url string) int {
	turn, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		defer turn.Close()
		err = lockFile(turn)
	}
	if err == nil {
		err = runClient(url)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runClient(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	c, err := newSuiteClient(ctx, url, scenario)
	if err == nil {
		err = c.runScenario(ctx, scenario)
	}
	if c != nil {
		err = errors.Join(err, c.close())
	}
	return err
}

// suiteClient is a runtime with one module and one role.
type suiteClient struct {
	rt     *runtime.Runtime
	loader *modules.Loader
	store  *persist.Store
	dir    string
	caller identity.Principal
	login  *suiteLogin // nil for scenarios without OAuth
}

func newSuiteClient(ctx context.Context, url, scenario string) (*suiteClient, error) {
	dir, err := os.MkdirTemp("", "rolecall-client-")
	if err != nil {
		return nil, err
	}
	c := &suiteClient{dir: dir}
	if c.store, err = persist.Open(dir); err != nil {
		return c, err
	}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	c.rt, err = runtime.New(runtime.Config{Store: c.store, Groups: groups,
		Model: func(string) (model.Model, error) { return nil, errors.New("no model in this test") }})
	if err != nil {
		return c, err
	}
	c.loader = modules.NewLoader(c.rt.GroupManager())
	log, prefix := slog.New(slog.NewTextHandler(os.Stderr, nil)), ""
	config := mcpclient.Config{Name: "suite", URL: url, Prefix: &prefix, Pins: modules.NewPinStore(c.rt.OwnerStore()),
		Host: modules.ModuleHost{Log: log, Store: c.rt.OwnerStore(), Changed: func() { c.loader.NotifyChanged("suite") }}}
	if strings.HasPrefix(scenario, "auth/") {
		if c.login, err = newSuiteLogin(ctx, url, scenario, dir, c.rt.OwnerStore()); err != nil {
			return c, err
		}
		config.Auth = c.login.server
		if err := c.login.logIn(ctx, ""); err != nil {
			return c, err
		}
	}
	err = c.load(ctx, config)
	if c.login != nil && errcode.CodeOf(err) == errcode.AuthorizationRequired {
		if err = c.login.logIn(ctx, ""); err == nil {
			err = c.load(ctx, config)
		}
	}
	if err != nil {
		return c, err
	}
	use := toolgroups.SetOf("suite")
	role, err := c.rt.CreateRole(ctx, tool.Call{By: identity.ByOperator("suite")}, org.RoleSpec{Name: "client", Use: &use})
	c.caller = identity.ByCaller("suite", role.ID)
	return c, err
}

// load loads the server as a module.
func (c *suiteClient) load(ctx context.Context, config mcpclient.Config) error {
	server, err := mcpclient.New(config)
	if err != nil {
		return err
	}
	return c.loader.LoadModule(ctx, server)
}

func (c *suiteClient) close() error {
	var errs []error
	if c.rt != nil {
		errs = append(errs, c.rt.Close())
	}
	if c.loader != nil {
		errs = append(errs, c.loader.Close(context.Background()))
	}
	if c.login != nil {
		c.login.logins.Close()
	}
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// acceptingPerson accepts each question as it is, with its defaults.
type acceptingPerson struct{}

func (acceptingPerson) SupportsInput(kind tool.InputKind) bool { return kind == tool.PersonInput }
func (acceptingPerson) LastMemo() json.RawMessage              { return nil }
func (acceptingPerson) RequestInput(_ context.Context, round tool.InputRound) ([]tool.InputResponse, error) {
	list := make([]tool.InputResponse, len(round.Requests))
	for i := range list {
		list[i].Answer = &tool.Answer{Action: tool.Accept}
	}
	return list, nil
}

// toolCall is a call that a scenario expects.
type toolCall struct {
	Name      string
	Arguments json.RawMessage
}

// runScenario makes the calls of a scenario. It ignores calls that the gate or the
// server rejects: some scenarios expect that.
func (c *suiteClient) runScenario(ctx context.Context, scenario string) error {
	calls, err := c.scenarioCalls(scenario)
	if err != nil {
		return err
	}
	for _, call := range calls {
		if err := c.call(ctx, call); err != nil {
			return err
		}
	}
	return nil
}

// call makes a call. When it needs another login, the person logs in and the call is made again,
// once.
func (c *suiteClient) call(ctx context.Context, call toolCall) error {
	for again := false; ; again = true {
		a, err := c.rt.InvokeTool(tool.WithInput(ctx, acceptingPerson{}), c.caller, call.Name, call.Arguments)
		if err != nil {
			return fmt.Errorf("call %s: %w", call.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %v %s\n", call.Name, a.Err, a.Result.JSON())
		if again || c.login == nil || !strings.Contains(string(a.Result.JSON()), string(errcode.AuthorizationRequired)) {
			return nil
		}
		if err := c.login.logIn(ctx, ""); err != nil {
			return err
		}
	}
}

// scenarioCalls returns the calls that the suite asks for, or else one call of each
// tool with valid arguments.
func (c *suiteClient) scenarioCalls(scenario string) ([]toolCall, error) {
	var expected struct{ ToolCalls []toolCall }
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &expected); err != nil {
			return nil, fmt.Errorf("decode the context of %s: %w", scenario, err)
		}
	}
	if len(expected.ToolCalls) > 0 {
		return withoutNulls(expected.ToolCalls)
	}
	schemas := map[string]json.RawMessage{}
	var list []toolCall
	for _, d := range c.rt.Gate().Subject(c.caller).ListableTools() {
		schemas[d.Name] = d.Input
		args, err := sampleArgs(d.Input, schemas["json_schema_2020_12_tool"])
		if err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", d.Name, err)
		}
		list = append(list, toolCall{d.Name, args})
	}
	return list, nil
}

// sampleArgs returns a value of the right type for each required argument. Arguments
// of type object get schema.
func sampleArgs(input, schema json.RawMessage) (json.RawMessage, error) {
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

// withoutNulls omits null arguments: the gate rejects null where a schema requires
// another type.
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
