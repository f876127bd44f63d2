package toolservice

import (
	"context"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
)

// operator is the user of calls that no external caller is behind.
const operator = "operator"

// userOf returns for whom a call is made: the name of the external caller whose task or request
// it is, else operator. Both come from the gate.
func userOf(c tool.Call) string {
	behind := c.Owner
	if behind == "" {
		behind = c.By.String()
	}
	caller, ok := identity.ParseCaller(behind)
	if !ok {
		return operator
	}
	return string(caller.User)
}

// token returns the call token of a request; "" if the service has no key.
func (t *serviceTool) token(ctx context.Context, c tool.Call, r protocol.Request) (string, error) {
	config := t.module.config
	if config.Keys == nil {
		return "", nil
	}
	keys, err := config.Keys()
	if err != nil {
		return "", errcode.Wrap(errcode.ToolUnavailable, err, "%s did not run: the keys of the tool service %q cannot be read", c.Name, config.Service.ID)
	}
	if len(keys) == 0 {
		return "", nil
	}
	organization := ""
	if config.Organization != nil {
		organization = config.Organization()
	}
	role := ""
	if config.RoleOf != nil {
		role = config.RoleOf(c.By)
	}
	expires, ok := ctx.Deadline()
	if !ok {
		expires = time.Now().Add(t.module.timeout())
	}
	claims := protocol.Token{
		Service: config.Service.ID, Organization: organization,
		Agent: string(c.By.Agent), Role: role, Tool: c.Name, CallID: string(c.ID),
		Expires: expires.UTC().Truncate(time.Second).Add(time.Second),
	}
	return t.module.signer(keys).SignRequest(claims, r), nil
}

// keySigner is the signer of some keys.
type keySigner struct {
	keys   []string
	signer *protocol.Signer
}

// signer returns the signer of keys, which change seldom.
func (m *Module) signer(keys []string) *protocol.Signer {
	last := m.signing.Load()
	if last == nil || !slices.Equal(last.keys, keys) {
		last = &keySigner{keys, protocol.NewSigner(keys...)}
		m.signing.Store(last)
	}
	return last.signer
}
