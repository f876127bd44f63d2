package rolecalltest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"

	"github.com/tidwall/gjson"
)

// Gate calls tools of modules as roles would. There is no model and no data directory.
type Gate struct {
	t     testing.TB
	host  *host
	roles int
}

// NewGate loads modules. They are closed after the test, which fails at once if one cannot be
// loaded. The built-in groups are there as well; programs do not run.
func NewGate(t testing.TB, list ...rolecall.Module) *Gate {
	t.Helper()
	return &Gate{t: t, host: newHost(t, list)}
}

// Caller is a user in a role. Its workflow state is its own.
type Caller struct {
	gate *Gate
	by   identity.Principal
}

// Caller returns a user in a new role that may use these groups; without any it may use
// nothing. The test fails at once if a group does not exist.
func (g *Gate) Caller(groups ...rolecall.GroupID) *Caller {
	g.t.Helper()
	g.roles++
	use, none := toolgroups.SetOf(groups...), toolgroups.SetOf()
	spec := org.RoleSpec{Name: fmt.Sprint("role ", g.roles), Use: &use, Grant: &none}
	role, err := g.host.rt.CreateRole(context.Background(), tool.Call{By: identity.ByOperator("test")}, spec)
	if err != nil {
		g.t.Fatalf("create a role with the groups %v: %v", groups, err)
	}
	return &Caller{g, identity.ByCaller("caller", role.ID)}
}

// Tools lists the names of the tools that the caller sees in its workflow state.
func (c *Caller) Tools() []string {
	return append([]string{}, c.gate.host.rt.Gate().Subject(c.by).ToolNames()...)
}

// Invoke calls a tool and returns its result. args is what marshals to a JSON object; nil is
// an empty one. A call that is denied, or that fails, returns an error with its code: for
// example tool_not_available, invalid_arguments, or that of the tool.
func (c *Caller) Invoke(ctx context.Context, name string, args any) (json.RawMessage, error) {
	if args == nil {
		args = struct{}{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidArguments, err, "%s: the arguments are not JSON", name)
	}
	out, err := c.gate.host.rt.InvokeTool(ctx, c.by, name, text)
	switch {
	case err != nil:
		return nil, err
	case out.Err != nil:
		return nil, out.Err
	case out.Result.IsError:
		return nil, errcode.New(out.Code(), "%s: %s", name, gjson.GetBytes(out.Result.Structured, "message").Str)
	}
	return out.Result.JSON(), nil
}
