package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/tool"
)

// declared is a tool that a configuration made. It never changes.
type declared struct {
	module     *Module
	config     config.DeclaredTool
	definition tool.Definition
	action     action
}

// action is what a tool does with the values of a call. Its error has a code,
// but for ctx's.
type action interface {
	run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error)
}

// kind makes the action of one type of tool.
type kind struct {
	sources []string // the types of sources it is for
	reads   bool     // it changes nothing, whatever the document says
	action  func(*declared) (action, error)
}

// kinds lists the types of tools.
func kinds() map[string]kind {
	lite := []string{config.SourceSQLite}
	postgres := []string{config.SourcePostgres, config.SourceCloudSQLPostgres}
	mysql := []string{config.SourceMySQL}
	return map[string]kind{
		config.ToolSQLiteSQL: {lite, false, newStatement}, config.ToolSQLiteExecute: {lite, false, newExecute}, config.ToolSQLiteListTables: {lite, true, newListing},
		config.ToolPostgresSQL: {postgres, false, newStatement}, config.ToolPostgresExecute: {postgres, false, newExecute}, config.ToolPostgresListTables: {postgres, true, newListing},
		config.ToolMySQLSQL: {mysql, false, newStatement}, config.ToolMySQLExecute: {mysql, false, newExecute}, config.ToolMySQLListTables: {mysql, true, newListing},
		config.ToolHTTP: {[]string{config.SourceHTTP}, false, newRequest},
	}
}

// declare makes a tool.
func (m *Module) declare(c config.DeclaredTool) (*declared, error) {
	k, ok := kindOf(c.Type, m.config.Source.Type)
	switch {
	case !ok:
		return nil, errcode.New(errcode.InvalidConfig, "type %q is none of a source of type %q", c.Type, m.config.Source.Type)
	case c.Parameters == nil:
		return nil, errcode.New(errcode.InvalidConfig, "its parameters are missing")
	case len(c.ScopesRequired) > 0 && m.config.ScopesOf == "":
		return nil, errcode.New(errcode.InvalidConfig, "scopesRequired: there is no auth service with mcpEnabled whose tokens carry scopes")
	}
	t := &declared{module: m, config: c}
	t.definition = tool.Definition{
		Name: c.Name, Description: c.Description, Input: c.Parameters.Schema(),
		Effect: m.effect(c, k), State: c.State, States: c.States, Auth: m.auth(c), Declared: c.Parameters,
	}
	var err error
	t.action, err = k.action(t)
	return t, err
}

func kindOf(name, source string) (kind, bool) {
	k, ok := kinds()[name]
	if !ok {
		return kind{}, false
	}
	for _, one := range k.sources {
		if one == source {
			return k, true
		}
	}
	return kind{}, false
}

// effect gives the effect class: as the document says, else by its hints.
func (m *Module) effect(c config.DeclaredTool, k kind) tool.Effect {
	says := func(hint *bool) bool { return hint != nil && *hint }
	var e tool.Effect
	switch {
	case k.reads:
		return tool.ReadOnly
	case c.Effect != "":
		_ = e.UnmarshalText([]byte(c.Effect)) // what is not known is Mutating
		return e
	case says(c.Annotations.ReadOnly), c.Annotations.ReadOnly == nil && m.config.Source.ReadOnly:
		return tool.ReadOnly
	case says(c.Annotations.Idempotent):
		return tool.Idempotent
	}
	return tool.Mutating
}

// auth gives who has to vouch for a caller; nil if nobody has to.
func (m *Module) auth(c config.DeclaredTool) *tool.Auth {
	a := tool.Auth{AnyOf: c.AuthRequired, Scopes: c.ScopesRequired, Parameters: c.Parameters.Services(), SecureArgs: c.Parameters.Secure()}
	if len(a.Scopes) > 0 {
		a.ScopesOf = m.config.ScopesOf
	}
	if len(a.AnyOf) == 0 && len(a.Scopes) == 0 && a.Parameters == nil && !a.SecureArgs {
		return nil
	}
	return &a
}

// Definition implements tool.Tool.
func (t *declared) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool.
func (t *declared) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	result, err := t.call(ctx, c)
	if err == nil {
		return result, nil
	}
	if _, coded := errors.AsType[*errcode.Error](err); !coded {
		return tool.Result{}, err
	}
	return tool.Failure(cmp.Or(c.Name, t.definition.Name), t.errorForEffect(err)), nil
}

func (t *declared) call(ctx context.Context, c tool.Call) (tool.Result, error) {
	values, err := t.config.Parameters.Parse(c.Args, claimsOf(c), c.Secure)
	if err != nil {
		return tool.Result{}, err
	}
	p, err := t.module.acquirePool()
	if err != nil {
		return tool.Result{}, err
	}
	return t.action.run(ctx, p.of(c.By), values)
}

func claimsOf(c tool.Call) parameter.Claims {
	return func(service string) (json.RawMessage, bool) {
		claims, ok := c.Claims[service]
		return claims, ok
	}
}

// errorForEffect gives an error the code that fits the tool's effect: what was begun
// and not answered is of unknown outcome where it may have changed something.
func (t *declared) errorForEffect(err error) error {
	mutating := t.definition.Effect == tool.Mutating
	switch code := errcode.Of(err); {
	case code == errcode.ToolTimeout && mutating:
		return errcode.Wrap(errcode.ToolInterrupted, err, "%s; whether it has changed anything is unknown: look before you call it again", errcode.Message(err))
	case code == errcode.ToolInterrupted && !mutating:
		return errcode.Wrap(errcode.ToolUnavailable, err, "the connection to source %s was lost; it is safe to call again", t.config.Source)
	case code == errcode.ResultTooLarge && mutating:
		return errcode.Wrap(code, err, "%s; what it changes may have been changed", errcode.Message(err))
	}
	return err
}

// rows, bytes and patience give the limits of a call: the tool's, else the
// source's; 0 is the default.
func (t *declared) rows() int { return cmp.Or(t.config.MaxRows, t.module.config.Source.MaxRows) }
func (t *declared) bytes() int {
	return cmp.Or(t.config.MaxResponseBytes, t.module.config.Source.MaxResponseBytes)
}
func (t *declared) timeout() time.Duration {
	return cmp.Or(t.config.Timeout, t.module.config.Source.Timeout)
}

// document gives JSON as a result. What strict readers disagree about, as two
// columns of one name, is text.
func document(doc json.RawMessage) tool.Result {
	if strictjson.Check(doc, nil) != nil {
		return tool.Result{Text: string(doc)}
	}
	return tool.Result{Structured: doc}
}
