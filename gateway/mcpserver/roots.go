//lint:file-ignore SA1019 the SDK marks roots as deprecated; clients of all revisions but the newest have them

package mcpserver

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/runtime"
)

// The limits of a client's roots. The timeout is for one roots/list.
const (
	maxRoots     = 100
	rootsTimeout = 5 * time.Second
)

// clientRoots are the roots of a client on stdio: the directories in which its user works. The
// tools for files use the first that the caller's workspace contains. A client chooses by
// its roots only among directories that the caller may use anyway.
//
// The roots are read by the first call after they have changed; other calls wait for that.
type clientRoots struct {
	changes atomic.Int64                      // grows with each change; 0 until the client declares roots
	session atomic.Pointer[sdk.ServerSession] // of the client; set before changes

	turn   chan struct{} // held while roots are read; guards the fields below
	readAt int64         // value of changes at the last roots/list
	dirs   []string      // absolute paths without symbolic links
}

func newClientRoots() *clientRoots { return &clientRoots{turn: make(chan struct{}, 1)} }

// rootsKey is the context key of WithRoots.
type rootsKey struct{}

// WithRoots returns a context for an upgrade to wire.MCPProtocol that uses the client's roots,
// as StdioClient.Roots does.
func WithRoots(ctx context.Context) context.Context {
	return context.WithValue(ctx, rootsKey{}, true)
}

// observe notes in a request whether the client has roots, and when they change. Call it
// before dropUnusedParams, which removes what it reads.
func (c *clientRoots) observe(req sdk.Request) {
	if c == nil {
		return
	}
	switch params := req.GetParams().(type) {
	case *sdk.InitializeParams:
		session, ok := req.GetSession().(*sdk.ServerSession)
		if ok && params != nil && params.Capabilities != nil && params.Capabilities.RootsV2 != nil && params.ProtocolVersion < statelessVersion {
			c.session.Store(session)
			c.changes.Store(1)
		}
	case *sdk.RootsListChangedParams:
		if c.changes.Load() > 0 {
			c.changes.Add(1)
		}
	}
}

// withRoot returns a context for calls of the client in the directory of its first root that
// is allowed. Without such a root the context is ctx.
//
// Errors: the errors of ctx.
func (s *Server) withRoot(ctx context.Context, sc *clientScope) (context.Context, error) {
	c := sc.roots
	if c == nil || c.changes.Load() == 0 {
		return ctx, nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if now := c.changes.Load(); now != c.readAt {
		dirs := s.readRoots(ctx, sc)
		if ctx.Err() != nil {
			return nil, ctx.Err() // the next call reads them
		}
		c.dirs, c.readAt = dirs, now
	}
	for _, dir := range c.dirs {
		if s.rt.IsInWorkspace(sc.caller, dir) {
			return runtime.WithSessionDir(ctx, dir), nil // the gate checks dir again with each call
		}
	}
	return ctx, nil
}

// readRoots asks the client for its roots and returns the directories among them. It logs
// what is ignored.
func (s *Server) readRoots(ctx context.Context, sc *clientScope) (dirs []string) {
	ctx, cancel := context.WithTimeout(ctx, s.config.RootsTimeout)
	defer cancel()
	list, err := sc.roots.session.Load().ListRoots(ctx, nil)
	if err != nil {
		s.config.UserLog.Warn("MCP client did not list its roots; they are ignored", "error", err)
		return nil
	}
	ignored := list.Roots[min(len(list.Roots), maxRoots):]
	for _, root := range list.Roots[:len(list.Roots)-len(ignored)] {
		dir, err := s.rootDir(sc.caller, root)
		if err != nil {
			ignored = append(ignored[:len(ignored):len(ignored)], root)
			continue
		}
		dirs = append(dirs, dir)
	}
	if len(ignored) > 0 {
		s.config.UserLog.Warn("MCP roots are ignored: not a directory in the workspace, or more than 100 roots", "count", len(ignored), "root", rootName(ignored[len(ignored)-1]))
	}
	return dirs
}

// rootName returns the URI of a root for the log.
func rootName(root *sdk.Root) string {
	if root == nil {
		return ""
	}
	return textutil.Truncate(root.URI, maxEchoBytes)
}

// errNoDirectory is the error for a root that is not a directory in the caller's workspace.
var errNoDirectory = errors.New("not a directory in the workspace")

// rootDir returns the directory of a root in the workspace of a caller.
func (s *Server) rootDir(caller identity.Principal, root *sdk.Root) (string, error) {
	if root == nil {
		return "", errNoDirectory
	}
	u, err := url.Parse(root.URI)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" || u.Path[0] != '/' {
		return "", errNoDirectory
	}
	dir, err := s.rt.ResolveWorkspace(u.Path)
	if err == nil && !s.rt.IsInWorkspace(caller, dir) {
		err = errNoDirectory
	}
	return dir, err
}
