// Package mcpserver serves the Model Context Protocol (MCP) over streamable HTTP or stdio.
// Clients list and call the tools of one role, read its resources and get its prompts. They
// also answer what tools ask. ask_organization runs a task.
//
//	server, err := mcpserver.New(mcpserver.Config{Runtime: rt})
//	err = server.Serve(w, r, sender) // one HTTP request; path values role, toolset
//	err = server.ServeStdio(ctx, in, out, mcpserver.StdioClient{Sender: sender, Role: "analyst"})
//	err = server.Close()
//
// The official Go SDK implements the protocol: versions, sessions and streams.
// The SDK never decides what a client may see or call. tools/list is answered
// from what the gate offers to the role, encoded once for each View. tools/call goes to
// Runtime.InvokeTool, and so do requests for resources and prompts, which tools answer
// (tool.Catalog). Simple HTTP requests are answered without
// the SDK (http.go); for the others the SDK calls the same functions (sdk.go).
// A client with a session is asked during a call (input_session.go). One without gets
// the questions as the result, and repeats the call with the answers (input_rounds.go).
//
// A tool of another role and a tool that does not exist are answered with the
// same error. The package does not decide permissions (org, gate), does not
// authenticate senders (gateway/auth) and does not run agents (runtime).
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
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/runtime"
)

// versions are the supported protocol versions, newest first.
var versions = [...]string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// statelessVersion is the first protocol version without sessions.
const statelessVersion = "2026-07-28"

// Config configures a Server. A zero limit selects its default.
type Config struct {
	Runtime *runtime.Runtime
	Log     *slog.Logger // nil discards
	UserLog *slog.Logger // receives what a client's user should see: roots that are ignored; nil is Log
	Version string       // of this program, reported to clients; "" is "unknown"

	Sessions       int           // open sessions of one sender, 64 by default; a new session ends the session that is idle longest
	MaxCalls       int           // concurrent requests of one sender; 64 by default
	SessionTimeout time.Duration // after which a session without requests ends; 30 minutes by default
	WriteTimeout   time.Duration // in which a client must read each part of an answer; 30 seconds by default

	ResumeWindow time.Duration // in which a client must resume the stream of a call that it lost; 1 minute by default

	WatchInterval time.Duration // between two looks at resources to which clients have subscribed; 2 seconds by default
	RootsTimeout  time.Duration // in which a client must answer roots/list; 5 seconds by default

	QuestionTimeout time.Duration // in which the client must answer what a tool asks; 5 minutes by default

	// Streaming returns the context for an answer without a time limit. It must
	// end with the request's context and when the listener shuts down. Nil uses
	// the request's context.
	Streaming func(context.Context) (context.Context, context.CancelFunc)
}

// Server serves MCP for one runtime. All methods are safe for concurrent use.
type Server struct {
	config Config
	rt     *runtime.Runtime
	log    *slog.Logger
	info   *sdk.Implementation

	failures *failurelog.Log // of calls

	sourceTime time.Duration // in which a source must list; the constant, but in tests

	resultMeta []byte            // _meta and resultType of results in versions without sessions
	askSchema  *argschema.Schema // of the arguments of ask_organization

	lifetime context.Context // ends with Close
	stop     context.CancelFunc
	work     sync.WaitGroup // closing sessions and watch

	transports transports
	events     *eventStore // of streams that clients may resume
	carriers   carriers
	ids        idEncoder
	limiter    *ConcurrencyLimiter
	sealer     *sealer // of what clients without a session bring back

	mu        sync.Mutex // guards the fields below; not held during I/O
	endpoints map[endpointKey]*endpoint
	sessions  map[string]*session
	watching  bool // watch is running

	subsMu       sync.Mutex // guards the fields below; not held during I/O
	subs         map[subscriptionKey]*subscription
	notified     map[*sdk.ServerSession]bool // sessions with a notification of a resource in progress
	watchingSubs bool                        // watchResources is running
}

// New returns a Server. The error names the field of Config that is missing or
// invalid. No goroutine runs before the first request.
func New(config Config) (*Server, error) {
	switch {
	case config.Runtime == nil:
		return nil, errors.New("mcpserver: Config.Runtime is missing")
	case config.Sessions < 0 || config.MaxCalls < 0 || config.SessionTimeout < 0 || config.WriteTimeout < 0 || config.RootsTimeout < 0 || config.WatchInterval < 0 || config.QuestionTimeout < 0 || config.ResumeWindow < 0:
		return nil, errors.New("mcpserver: Config.Sessions, MaxCalls, SessionTimeout, WriteTimeout, RootsTimeout, WatchInterval, QuestionTimeout and ResumeWindow must not be negative")
	}
	config.setDefaults()
	s := &Server{
		config: config, rt: config.Runtime, log: config.Log, failures: failurelog.New(config.Log), sourceTime: sourceTime,
		info:      &sdk.Implementation{Name: "rolecall", Version: config.Version},
		endpoints: map[endpointKey]*endpoint{}, sessions: map[string]*session{}, subs: map[subscriptionKey]*subscription{}, notified: map[*sdk.ServerSession]bool{},
		ids: newIDEncoder(), limiter: NewConcurrencyLimiter(config.MaxCalls),
	}
	s.resultMeta = encodeResultMeta(s.info)
	var err error
	if s.askSchema, err = argschema.Compile(json.RawMessage(askInput)); err != nil {
		return nil, err
	}
	if s.sealer, err = newSealer(); err != nil {
		return nil, err
	}
	s.lifetime, s.stop = context.WithCancel(context.Background())
	s.events = newEventStore()
	s.transports = newTransports(s.events)
	return s, nil
}

// setDefaults sets the defaults.
func (config *Config) setDefaults() {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.UserLog == nil {
		config.UserLog = config.Log
	}
	if config.WatchInterval == 0 {
		config.WatchInterval = watchInterval
	}
	if config.RootsTimeout == 0 {
		config.RootsTimeout = rootsTimeout
	}
	if config.QuestionTimeout == 0 {
		config.QuestionTimeout = questionTimeout
	}
	if config.ResumeWindow == 0 {
		config.ResumeWindow = time.Minute
	}
	if config.Sessions == 0 {
		config.Sessions = 64
	}
	if config.MaxCalls == 0 {
		config.MaxCalls = maxCalls
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

// Close ends all sessions and returns when no goroutine of the Server runs.
// HTTP calls in progress end with their requests. It may be called twice.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	for _, session := range s.sessions {
		s.endSession(session)
	}
	for _, e := range s.endpoints {
		s.removeEndpoint(e)
	}
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Serve answers one HTTP request of sender, which must be the operator or a
// caller. The path values role and toolset select the tools; a slash at the end
// of toolset is ignored.
//
// Serve returns an error, before anything is written, if the request is
// rejected. It returns RoleNotFound or GroupNotFound also for something that
// belongs to another role. It returns ToolUnavailable after Close. A POST to an
// unknown group is answered with an error of the protocol instead.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, sender identity.Principal) error {
	if s.lifetime.Err() != nil {
		return errcode.New(errcode.ToolUnavailable, "serve MCP: rolecall is shutting down")
	}
	w = WithWriteTimeout(w, s.config.WriteTimeout)
	toolset := r.PathValue("toolset")
	if len(toolset) > 1 { // a slash alone stays, and names no group
		toolset = strings.TrimSuffix(toolset, "/")
	}
	sc, err := s.scopeFor(sender, r.PathValue("role"), toolset)
	if errcode.CodeOf(err) == errcode.GroupNotFound && r.Method == http.MethodPost {
		s.answerUnknownToolset(w, r, sender)
		return nil
	}
	if err != nil {
		return err
	}
	defer sc.endpoint.release()
	sc.revalidate, _ = r.Context().Value(revalidateKey{}).(func() bool)
	sc.count, _ = r.Context().Value(countKey{}).(func() error)
	switch {
	case isUpgrade(r):
		return s.serveUpgrade(w, r, sc)
	case r.Method == http.MethodPost:
		return s.servePOST(w, r, sc)
	}
	s.serveNonPOST(w, r, sc)
	return nil
}
