// Package mcpserver owns rolecall as a server of the Model Context Protocol: its
// clients get exactly the tools of a role, on streamable HTTP and on lines.
//
//	server, err := mcp.New(mcp.Config{Runtime: rt})
//	err = server.Serve(w, r, sender) // one HTTP request; path values role, toolset
//	err = server.Talk(ctx, in, out, sender, "analyst") // stdio
//	err = server.Close()
//
// The official SDK speaks the protocol: versions, sessions, streams. What a
// client may see and call it is never asked: tools/list is answered from what
// the gate offers to the role, serialised once for each View, and tools/call
// goes to runtime.Invoke. A single one of these two that came by HTTP and that
// request.go understands completely is answered without the SDK (post.go);
// anything else is the SDK's, and comes to the same functions (sdk.go).
//
// A tool that is not the role's and a tool that is nowhere are one and the same
// protocol error. The package decides no permission (org, gate), knows no
// tokens (gateway) and runs no agent (runtime).
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// versions are the versions of the protocol that are spoken, newest first.
var versions = [...]string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// stateless is the first version without sessions.
const stateless = "2026-07-28"

// Config is what a Server needs. Zero limits are the defaults.
type Config struct {
	Runtime *runtime.Runtime
	Log     *slog.Logger // nil discards
	Version string       // of this program, told to clients

	Sessions       int           // at once, of one sender; 64. The oldest idle one makes room
	Calls          int           // requests at once, of one sender; 64
	SessionTimeout time.Duration // after which a session without requests ends; 30 minutes
	WriteTimeout   time.Duration // in which a client reads a part of an answer; 30 seconds

	// Streaming gives the context of an answer that may take for ever: it ends
	// with the request, and when the listener shuts down. Nil is that of the
	// request.
	Streaming func(context.Context) (context.Context, context.CancelFunc)
}

// Server serves the protocol. All methods are safe for concurrent use.
type Server struct {
	config Config
	rt     *runtime.Runtime
	log    *slog.Logger
	about  *sdk.Implementation

	signature []byte       // of results where there are no sessions
	asking    *tool.Schema // of the arguments of ask_organization

	life context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // sessions that end, pipes, the watch

	http transports
	ids  idEncoder
	busy *ConcurrencyLimiter

	mu        sync.Mutex // guards what follows; held for no I/O
	endpoints map[key]*endpoint
	sessions  map[string]*session
	watching  bool
}

// New makes a Server; the error names the field of Config that is missing, or
// that no limit can be. Nothing runs before a client comes.
func New(config Config) (*Server, error) {
	switch {
	case config.Runtime == nil:
		return nil, errors.New("mcp: Config.Runtime is missing")
	case config.Sessions < 0 || config.Calls < 0 || config.SessionTimeout < 0 || config.WriteTimeout < 0:
		return nil, errors.New("mcp: Config.Sessions, Calls, Idle and Patience must not be negative")
	}
	config.complete()
	s := &Server{
		config: config, rt: config.Runtime, log: config.Log,
		about:     &sdk.Implementation{Name: "rolecall", Version: config.Version},
		endpoints: map[key]*endpoint{}, sessions: map[string]*session{},
		ids: newIDs(), busy: NewConcurrencyLimiter(config.Calls),
	}
	s.signature = signature(s.about)
	var err error
	if s.asking, err = tool.Compile(json.RawMessage(askInput)); err != nil {
		return nil, err
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.http = newTransports()
	return s, nil
}

func (config *Config) complete() {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Sessions == 0 {
		config.Sessions = 64
	}
	if config.Calls == 0 {
		config.Calls = maxCalls
	}
	if config.SessionTimeout == 0 {
		config.SessionTimeout = 30 * time.Minute
	}
	if config.WriteTimeout == 0 {
		config.WriteTimeout = writeTimeout
	}
	if config.Version == "" {
		config.Version = "unknown"
	}
	if config.Streaming == nil {
		config.Streaming = context.WithCancel
	}
}

// Close ends all sessions and returns when nothing of the Server runs any
// more. Calls that came by HTTP end with their requests. It may be called
// twice.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	for _, session := range s.sessions {
		s.end(session)
	}
	for _, e := range s.endpoints {
		s.removeEndpoint(e)
	}
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Serve answers one HTTP request of sender: the operator, or a caller in its
// role. The path values role and toolset, which may have a slash at its end, say
// which tools are meant. The error,
// with its code, says why the request was refused before anything was written:
// RoleNotFound and GroupNotFound for what is not the sender's, too. A message to
// a group that is not there is answered, with an error of the protocol.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, sender identity.Principal) error {
	if s.life.Err() != nil {
		return errcode.New(errcode.ToolUnavailable, "serve MCP: rolecall is closing")
	}
	w = WithWriteTimeout(w, s.config.WriteTimeout)
	toolset := r.PathValue("toolset")
	if len(toolset) > 1 { // a slash alone is the name of nothing
		toolset = strings.TrimSuffix(toolset, "/")
	}
	d, err := s.scopeFor(sender, r.PathValue("role"), toolset)
	if errcode.Of(err) == errcode.GroupNotFound && r.Method == http.MethodPost {
		s.noToolset(w, r, sender)
		return nil
	}
	if err != nil {
		return err
	}
	defer d.endpoint.leave()
	switch {
	case isUpgrade(r):
		return s.serveUpgrade(w, r, d)
	case r.Method == http.MethodPost:
		return s.post(w, r, d)
	}
	s.stream(w, r, d)
	return nil
}
