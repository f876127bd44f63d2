//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpclient

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// The log messages of a server do not say for which call they are, and may come after its answer.
// They are relayed to the only call in progress, and only on a connection that has served one
// owner alone. Then a late message is about an earlier call of the same owner.

// relayedLevel is the level from which on a server is asked for log messages.
const relayedLevel sdk.LoggingLevel = "info"

// firstWithoutSessions is the first revision in which each call asks for log messages.
const firstWithoutSessions = "2026-07-28"

// maxRelayedLog is the most bytes of a log message that are looked at.
const maxRelayedLog = 4 << 10

// startLogging asks a server with a session for log messages, if they are relayed. Calls ask a server without one.
func (n *conn) startLogging(ctx context.Context) {
	started := n.session.InitializeResult()
	if !n.relay.Logging || started == nil || started.Capabilities == nil || started.Capabilities.Logging == nil || started.ProtocolVersion >= firstWithoutSessions {
		return
	}
	if err := n.session.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: relayedLevel}); err != nil {
		n.log.Warn("MCP server rejects a level for log messages; none are relayed", "error", err)
	}
}

// askForLogs adds to a call that its client wants log messages, if they are relayed.
func (n *conn) askForLogs(params *sdk.CallToolParams) {
	if n.relay.Logging {
		params.Meta[sdk.MetaKeyLogLevel] = relayedLevel
	}
}

// logReader relays the log messages of a program in the order in which it writes them. A message
// just before an answer belongs to that call. The library handles messages and answers side by
// side.
type logReader struct {
	sdk.Connection
	conn *conn
}

// Read implements sdk.Connection.
func (r logReader) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := r.Connection.Read(ctx)
	if message, ok := m.(*jsonrpc.Request); ok && message.Method == "notifications/message" {
		var params sdk.LoggingMessageParams
		if json.Unmarshal(message.Params, &params) == nil {
			r.conn.relayLog(&params)
		}
	}
	return m, err
}

// relayLog handles a log message of the server.
func (n *conn) relayLog(params *sdk.LoggingMessageParams) {
	call := n.loggedCall()
	if call == nil || params == nil {
		return
	}
	text, ok := params.Data.(string)
	if !ok {
		data, err := json.Marshal(params.Data)
		if err != nil {
			return
		}
		text = string(data)
	}
	tool.Log(call.ctx, slogLevel(params.Level), textutil.RemoveInvisible(textutil.Truncate(text, maxRelayedLog)))
}

// loggedCall returns the call that a log message is relayed to, nil if there is none.
func (n *conn) loggedCall() *openCall {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.relay.Logging || n.shared || len(n.open) != 1 {
		return nil
	}
	for call := range n.open {
		return call
	}
	return nil
}

// slogLevel returns a level of the protocol as one of slog.
func slogLevel(l sdk.LoggingLevel) slog.Level {
	switch l {
	case "debug":
		return slog.LevelDebug
	case "info", "notice":
		return slog.LevelInfo
	case "warning":
		return slog.LevelWarn
	}
	return slog.LevelError
}
