package mcpserver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestProgress_IsForwarded(t *testing.T) {
	f := openFixture(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			all := make(chan struct{})
			session := f.connect(t, "ann@tester", "/mcp", version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Progress, "/", r.Params.Total, " ", r.Params.Message))
					if len(got) == 3 {
						close(all)
					}
				},
			})
			params := &sdk.CallToolParams{Name: "count", Arguments: raw(`{}`)}
			params.SetProgressToken("p")
			result, err := session.CallTool(t.Context(), params)
			if err != nil || textOf(result) != "counted" {
				t.Fatalf("%+v %v", result, err)
			}
			waitFor(t, "progress", all)
			mu.Lock()
			defer mu.Unlock()
			if want := []string{"p 1/3 step\na", "p 2/3 step\nb", "p 3/3 step\nc"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
