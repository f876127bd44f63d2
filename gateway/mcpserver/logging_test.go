//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A tool's log messages reach the client that has set a level, from this level on, without
// invisible characters and only the first hundred. Other clients get none.
func TestLogging_SendsWhatClientAskedFor(t *testing.T) {
	f := openFixture(t)
	speak := func(ctx context.Context, _ noArgs) (string, error) {
		tool.Log(ctx, slog.LevelDebug, "detail")
		tool.Log(ctx, slog.LevelWarn, "care\u202e"+strings.Repeat("x", 2000))
		for range 200 {
			tool.Log(ctx, slog.LevelError, "again")
		}
		return "done", nil
	}
	f.register(t, toolgroups.Group{ID: "loud", Tools: []tool.Tool{must(t)(tool.New("speak", "d", speak, nil))}})
	f.role(t, "speaker", "loud")
	for _, version := range versions[1:] {
		got := make(chan string, 1000)
		o := &sdk.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			got <- fmt.Sprint(r.Params.Level, " ", r.Params.Logger, " ", r.Params.Data)
		}}
		silent := f.connect(t, "bob@speaker", "/mcp", version, o)
		callTool(t, silent, "speak", obj{})
		session := f.connect(t, "ann@speaker", "/mcp", version, o)
		callTool(t, session, "speak", obj{})
		if len(got) > 0 {
			t.Errorf("%s: without a level the client gets %q", version, <-got)
		}
		if err := session.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "warning"}); err != nil {
			t.Fatal(err)
		}
		callTool(t, session, "speak", obj{})
		callTool(t, silent, "speak", obj{})
		first := <-got
		if !strings.HasPrefix(first, "warning speak carex") || len(first) > 1100 {
			t.Errorf("%s: the first message is %.40q of %d bytes", version, first, len(first))
		}
		for range 98 { // of a hundred, one was a detail
			if m := <-got; m != "error speak again" {
				t.Errorf("%s: then %q", version, m)
			}
		}
		if len(got) > 0 {
			t.Errorf("%s: %d more messages came", version, len(got))
		}
	}
}
