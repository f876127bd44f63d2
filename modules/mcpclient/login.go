package mcpclient

import (
	"context"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/tool"
)

// Connect makes one connection to the server of a configuration, which an Authorizer authorizes,
// and closes it. If the server has asked for no authorization so far, Connect lists its first
// tools. Only ctx bounds the time. Connect is a mcpauth.Connect for a login. Errors have the code
// invalid_config or a code of the Authorizer, or are errors of the connection.
func Connect(ctx context.Context, c Config, auth mcpauth.Authorizer) error {
	c.DisablePinning = true // nothing is listed
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	n, err := dialWithoutTimeout(ctx, c, slog.New(slog.DiscardHandler), auth)
	if err != nil {
		return err
	}
	defer n.close()
	if has := n.session.InitializeResult().Capabilities; n.secrets.challenged.Load() || has == nil || has.Tools == nil {
		return nil
	}
	if _, err := n.session.ListTools(ctx, &sdk.ListToolsParams{}); err != nil {
		return n.explain(err)
	}
	return nil
}

// authorizer returns what authorizes the connections of a subject; nil for a server without OAuth.
func (c Config) authorizer(subject mcpauth.Subject) mcpauth.Authorizer {
	if c.Auth == nil {
		return nil
	}
	return c.Auth.Authorizer(subject)
}

// subjectOf returns for whom a call is made.
func (c Config) subjectOf(call tool.Call) (mcpauth.Subject, error) {
	if c.SubjectOf != nil {
		if subject, ok := c.SubjectOf(call); ok && subject != "" {
			return subject, nil
		}
	}
	return "", errcode.New(errcode.AuthorizationRequired, "the MCP server %q needs the login of a person, and the call is made for none", c.Name).With("server", c.Name)
}

// loginChanged ends the connection of a subject after a login or a logout. It does not block. For
// the operator it connects again.
func (m *Module) loginChanged(subject mcpauth.Subject) {
	if subject != mcpauth.Operator {
		m.callers.forget(subject)
		return
	}
	m.reconnector.background.Go(func() {
		m.reconnector.reset()
		if m.config.NoConnect || m.config.Auth.NeedsLogin(m.reconnector.ctx, subject) {
			return
		}
		if _, err := m.reconnector.connection(m.reconnector.ctx); err != nil {
			m.log.Warn("MCP server not reached after the login", "error", err)
		}
	})
}

// reset ends the connection, so that the next one is made at once.
func (r *reconnector) reset() {
	select {
	case <-r.sem:
		defer func() { r.sem <- struct{}{} }()
	case <-r.ctx.Done():
		return
	}
	if r.conn != nil {
		r.conn.close()
		r.conn = nil
	}
	r.retryAt, r.lastErr = r.retryAt.AddDate(-1, 0, 0), nil
}
