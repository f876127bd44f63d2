package cmd

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/journal"
)

// The tasks are listed only for the hint about a caller without events.
func TestCheckNames_ListsTasksForHintOnly(t *testing.T) {
	recorded := journal.Event{Seq: 1, At: time.Unix(1, 0), Body: journal.ToolCall{Caller: "user:ann@clerk"}}
	for caller, want := range map[string][]string{
		"user:ann@clerk": {"/api/v1/events"},
		"bert":           {"/api/v1/events", "/api/v1/tasks"},
	} {
		var asked []string
		api := client.NewLocal(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			var answer any = client.Events{}
			switch {
			case r.URL.Path == "/api/v1/tasks":
				answer = wire.Page[client.Task]{Items: []client.Task{{Caller: "user:bart@clerk"}}}
			case r.URL.Query().Get("caller") == recorded.Body.(journal.ToolCall).Caller:
				answer = map[string]any{"items": []journal.Event{recorded}, "next": ""}
			}
			_ = json.NewEncoder(w).Encode(answer)
		}))
		err := checkNames(t.Context(), api, client.EventQuery{Caller: caller}, false)
		if known := len(want) == 1; (err == nil) != known || err != nil && !strings.Contains(err.Error(), `did you mean "bart"`) {
			t.Errorf("%s: %v", caller, err)
		}
		if !slices.Equal(asked, want) {
			t.Errorf("%s: the requests are %q, want %q", caller, asked, want)
		}
	}
}
