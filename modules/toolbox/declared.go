package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// declaredTool is a tool that the configuration declares. It implements tool.Tool. It is immutable.
type declaredTool struct {
	module     *Module
	config     *toolboxfile.DeclaredTool
	definition tool.Definition
	action     action
}

// action runs the calls of a tool: statement, execute, listing or request. Its errors have a code,
// except errors of ctx.
type action interface {
	run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error)
}

// toolKind describes one type of tool.
type toolKind struct {
	sources []string // the types of sources it works with
	effect  effectFrom
	action  func(*declaredTool) (action, error)
}

// effectFrom says where the effect class of a tool comes from.
type effectFrom int

const (
	effectConfigured effectFrom = iota // from the configuration of the tool
	alwaysReadOnly                     // from its type, whatever the configuration says
)

// toolKinds returns the types of tools by name. The map is built once: that builds the statements of
// all tools that read catalogs, and each declared tool looks up its type.
var toolKinds = sync.OnceValue(buildToolKinds)

func buildToolKinds() map[string]toolKind {
	sqlite := []string{toolboxfile.SourceSQLite}
	postgres := []string{toolboxfile.SourcePostgres, toolboxfile.SourceCloudSQLPostgres}
	mysql := []string{toolboxfile.SourceMySQL}
	service := toolKind{[]string{toolboxfile.SourceHTTP}, effectConfigured, newRequest}
	kinds := map[string]toolKind{
		toolboxfile.ToolSQLiteSQL:          {sqlite, effectConfigured, newStatement},
		toolboxfile.ToolSQLiteExecute:      {sqlite, effectConfigured, newExecuteSQL},
		toolboxfile.ToolSQLiteListTables:   {sqlite, alwaysReadOnly, newListing},
		toolboxfile.ToolPostgresSQL:        {postgres, effectConfigured, newStatement},
		toolboxfile.ToolPostgresExecute:    {postgres, effectConfigured, newExecuteSQL},
		toolboxfile.ToolPostgresListTables: {postgres, alwaysReadOnly, newListing},
		toolboxfile.ToolMySQLSQL:           {mysql, effectConfigured, newStatement},
		toolboxfile.ToolMySQLExecute:       {mysql, effectConfigured, newExecuteSQL},
		toolboxfile.ToolMySQLListTables:    {mysql, alwaysReadOnly, newListing},
		toolboxfile.ToolHTTP:               service,
		toolboxfile.ToolKnowledgeQuery:     service,
		toolboxfile.ToolStructuredQuery:    service,
		toolboxfile.ToolTextCompletion:     service,
		toolboxfile.ToolPrompt:             service,
	}
	for _, name := range toolboxfile.CatalogTypes(toolboxfile.SourcePostgres) {
		kinds[name] = toolKind{postgres, alwaysReadOnly, newStatement}
	}
	for _, name := range toolboxfile.CatalogTypes(toolboxfile.SourceMySQL) {
		kinds[name] = toolKind{mysql, alwaysReadOnly, newStatement}
	}
	return kinds
}

// declare returns the tool of a configuration. Errors: InvalidConfig.
func (m *Module) declare(c *toolboxfile.DeclaredTool) (*declaredTool, error) {
	k, ok := findKind(c.Type, m.config.Source.Type)
	switch {
	case !ok:
		return nil, errcode.New(errcode.InvalidConfig, "type %q does not work with a source of type %q", c.Type, m.config.Source.Type)
	case c.Parameters == nil:
		return nil, errcode.New(errcode.InvalidConfig, "parameters are missing")
	case len(c.ScopesRequired) > 0 && m.config.ScopesOf == "":
		return nil, errcode.New(errcode.InvalidConfig, "scopesRequired: needs an auth service with mcpEnabled")
	}
	t := &declaredTool{module: m, config: c}
	t.definition = tool.Definition{
		Name: c.Name, Description: c.Description, Input: c.Parameters.Schema(),
		Effect: m.effect(c, k), Flags: c.Flags, State: c.NextState, States: c.InStates, Auth: m.auth(c), Declared: c.Parameters,
	}
	var err error
	t.action, err = k.action(t)
	return t, err
}

// findKind returns the type of tool of this name, if it works with the source.
func findKind(name, source string) (toolKind, bool) {
	k, ok := toolKinds()[name]
	if !ok || !slices.Contains(k.sources, source) {
		return toolKind{}, false
	}
	return k, true
}

// effect returns the effect class: the configured one, else the one of the hints.
func (m *Module) effect(c *toolboxfile.DeclaredTool, k toolKind) tool.Effect {
	isSet := func(hint *bool) bool { return hint != nil && *hint }
	var e tool.Effect
	switch {
	case k.effect == alwaysReadOnly:
		return tool.ReadOnly
	case c.Effect != "":
		_ = e.UnmarshalText([]byte(c.Effect)) // an unknown class stays Mutating
		return e
	case isSet(c.Annotations.ReadOnly), c.Annotations.ReadOnly == nil && (m.config.Source.ReadOnly || c.HTTP != nil && c.HTTP.OnlyReads):
		return tool.ReadOnly
	case isSet(c.Annotations.Idempotent):
		return tool.Idempotent
	}
	return tool.Mutating
}

// auth returns which tokens of auth services a call needs, nil if it needs none.
func (m *Module) auth(c *toolboxfile.DeclaredTool) *tool.Auth {
	a := tool.Auth{AnyOf: c.AuthRequired, Scopes: c.ScopesRequired, Parameters: c.Parameters.ClaimServices(), SecureArgs: c.Parameters.HasSecure()}
	if len(a.Scopes) > 0 {
		a.ScopesOf = m.config.ScopesOf
	}
	if len(a.AnyOf) == 0 && len(a.Scopes) == 0 && a.Parameters == nil && !a.SecureArgs {
		return nil
	}
	return &a
}

// Definition implements tool.Tool.
func (t *declaredTool) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool.
func (t *declaredTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	result, err := t.call(ctx, c)
	if err == nil {
		return result, nil
	}
	if _, coded := errors.AsType[*errcode.Error](err); !coded {
		return tool.Result{}, err
	}
	return tool.Failure(cmp.Or(c.Name, t.definition.Name), t.errorForEffect(err)), nil
}

// call parses the arguments of a call and runs it.
func (t *declaredTool) call(ctx context.Context, c tool.Call) (tool.Result, error) {
	values, err := t.config.Parameters.ParseArguments(c.Args, claimsOf(c), c.Secure)
	if err != nil {
		return tool.Result{}, err
	}
	p, err := t.module.acquirePool()
	if err != nil {
		return tool.Result{}, err
	}
	return t.action.run(ctx, p.forCaller(c), values)
}

// claimsOf returns the verified claims of a call by auth service.
func claimsOf(c tool.Call) parameter.Claims {
	return func(service string) (json.RawMessage, bool) {
		claims, ok := c.Claims[service]
		return claims, ok
	}
}

// errorForEffect returns err with a code that says whether the call may be repeated. A call that got
// no answer may be repeated if the tool changes nothing or is idempotent. Otherwise its outcome is
// unknown.
func (t *declaredTool) errorForEffect(err error) error {
	mutating := t.definition.Effect == tool.Mutating
	switch code := errcode.CodeOf(err); {
	case code == errcode.ToolTimeout && mutating:
		return errcode.Wrap(errcode.ToolInterrupted, err, "%s; whether it has changed anything is unknown: verify the effect before retrying", errcode.Message(err))
	case code == errcode.ToolInterrupted && !mutating:
		return errcode.Wrap(errcode.ToolUnavailable, err, "the connection to source %s was lost; it is safe to retry", t.config.Source)
	case code == errcode.ResultTooLarge && mutating:
		return errcode.Wrap(code, err, "%s; the changes may have been made", errcode.Message(err))
	}
	return err
}

// maxRows, maxBytes and timeout return the limits of a call: the tool's, else the source's,
// 0 for the default.
func (t *declaredTool) maxRows() int { return cmp.Or(t.config.MaxRows, t.module.config.Source.MaxRows) }
func (t *declaredTool) maxBytes() int {
	return cmp.Or(t.config.MaxResponseBytes, t.module.config.Source.MaxResponseBytes)
}
func (t *declaredTool) timeout() time.Duration {
	return cmp.Or(t.config.Timeout, t.module.config.Source.Timeout)
}

// jsonResult returns JSON as a result. Ambiguous JSON, such as a row with two columns
// of one name, is returned as text.
func jsonResult(doc json.RawMessage) tool.Result {
	if strictjson.CheckKeys(doc, nil) != nil {
		return tool.Result{Text: string(doc)}
	}
	return tool.Result{Structured: doc}
}
