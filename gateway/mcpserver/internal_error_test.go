package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/journal"
)

// failingStore is a store whose commits fail once fail is set.
type failingStore struct {
	journal.Store
	fail atomic.Bool
}

// Commit implements journal.Store.
func (s *failingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if s.fail.Load() {
		return 0, errors.New("the disk is on fire")
	}
	return s.Store.Commit(ctx, b)
}

// A call that fails with an internal error tells the client to see the log, which has the
// cause, however the call was decoded.
func TestToolsCall_LogsCauseOfInternalErrors(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			var log buffer.SyncBuffer
			failing := new(failingStore)
			f := fixtureConfig{
				config:    mcpserver.Config{Log: slog.New(slog.NewTextHandler(&log, nil))},
				wrapStore: func(s journal.Store) journal.Store { failing.Store = s; return failing },
			}.open(t)
			session := f.connect(t, "ann@tester", "/mcp", version, nil)
			failing.fail.Store(true)
			_, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "advance", Arguments: raw(`{}`)})
			if text := fmt.Sprint(err); !strings.Contains(text, "see the log") || strings.Contains(text, "fire") {
				t.Errorf("the client got %v", err)
			}
			if text := log.String(); !strings.Contains(text, `msg="MCP call failed" tool=advance`) || !strings.Contains(text, "the disk is on fire") {
				t.Errorf("got the log %q", text)
			}
			for range 50 {
				_, _ = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "advance", Arguments: raw(`{}`)})
			}
			if n := strings.Count(log.String(), "MCP call failed"); n > 20 { // 10 in each window of time
				t.Errorf("51 calls of one sender wrote %d lines", n)
			}
		})
	}
}
