package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// usageFixture has used two calls and one denied call of the caller ann, and the same of the
// operator. Each answer has used tokens.
func usageFixture(t *testing.T) (operator, caller *gatewaytest.Fixture) {
	t.Helper()
	operator, caller, _ = newAskFixture(t, func(r model.Request) model.Answer {
		a := gatewaytest.EndAnswer("done")
		if n := gatewaytest.CountAnswers(r); n < 3 {
			a = gatewaytest.ToolCallAnswer([]string{"find_page", "find_page", "find_book"}[n], map[string]any{})
		}
		a.Usage = model.TokenUsage{Input: 10, Cached: 2, Output: 3, Cost: 5}
		return a
	})
	for _, f := range []*gatewaytest.Fixture{operator, caller} {
		gatewaytest.GetJSON[client.AgentAnswer](t, f, "POST /api/v1/agent", `{"question":"q","role":"clerk"}`)
	}
	return operator, caller
}

// The sums equal the events of the record, for each key, and callers see their own.
func TestUsage_EqualsRecord(t *testing.T) {
	operator, caller := usageFixture(t)
	ctx := t.Context()
	want := client.UsageTotal{}
	for e, err := range operator.LocalClient().StreamEvents(ctx, client.EventQuery{}, false) {
		switch b := e.Body.(type) {
		case journal.ToolCall:
			want.Calls.Total++
			if b.Decision == journal.Denied {
				want.Calls.Denied++
			}
		case journal.ModelAnswered:
			want.Usage = want.Usage.Add(b.Answer.Usage)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range [][]string{nil, {"caller"}, {"role"}, {"server"}, {"tool"}, {"caller", "role", "server", "tool"}} {
		report, err := operator.LocalClient().FetchUsage(ctx, by, "1h", "")
		if err != nil {
			t.Fatal(err)
		}
		sum := client.UsageTotal{}
		for _, row := range report.Items {
			sum.Calls.Total, sum.Calls.Denied, sum.Usage = sum.Calls.Total+row.Calls.Total, sum.Calls.Denied+row.Calls.Denied, sum.Usage.Add(row.Usage)
		}
		if diff := cmp.Diff([]client.UsageTotal{want, want}, []client.UsageTotal{report.Total, sum}); diff != "" {
			t.Errorf("by %q: (-want +got)\n%s", by, diff)
		}
	}
	own, err := caller.LocalClient().FetchUsage(ctx, []string{"caller", "tool"}, "", "")
	if err != nil || own.Total.Calls.Total != 3 || own.Total.Usage.Input != 40 {
		t.Errorf("of the caller: %+v, %v", own.Total, err)
	}
	for _, row := range own.Items {
		if !strings.HasPrefix(row.Caller, "user:ann@") {
			t.Errorf("the caller sees %+v", row)
		}
	}
}

// Each row has the keys that were asked for.
func TestUsage_Rows(t *testing.T) {
	operator, _ := usageFixture(t)
	report, err := operator.LocalClient().FetchUsage(t.Context(), []string{"tool", "server"}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range report.Items {
		got = append(got, strings.Join([]string{row.Caller, row.Role, row.Server, row.Tool}, "|"))
	}
	if want := []string{"|||", "||test|find_book", "||test|find_page"}; !slices.Equal(got, want) {
		t.Errorf("rows %q", got)
	}
}

// The bounds are times of events: what is before or after them does not count.
func TestUsage_Times(t *testing.T) {
	operator, _ := usageFixture(t)
	for _, tt := range []struct {
		from, to string
		calls    int
	}{{"1h", "", 6}, {"", "1h", 0}, {"0s", "", 0}, {"1h", time.Now().Add(time.Hour).Format(time.RFC3339), 6}} {
		report, err := operator.LocalClient().FetchUsage(t.Context(), nil, tt.from, tt.to)
		if err != nil || report.Total.Calls.Total != tt.calls {
			t.Errorf("%+v: %+v, %v", tt, report.Total, err)
		}
	}
	for range 20 { // the first of two errors is the same each time
		if status, text := operator.SendText(t, "/api/v1/usage?from=yesterday&to=tomorrow", ""); status != http.StatusBadRequest || !strings.Contains(text, `\"from\"`) {
			t.Fatalf("%d %s", status, text)
		}
	}
	for query, want := range map[string]string{"by=agent": "by", "by=": "by", "from=yesterday": "from", "to=-1h": "to", "since=1h": "since"} {
		if status, text := operator.SendText(t, "/api/v1/usage?"+query, ""); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

// A caller does not learn whether a tool that it does not see exists, nor whose it is: its row is
// as that of a tool that does not exist.
func TestUsage_HidesServersFromCallers(t *testing.T) {
	operator, caller, _ := newAskFixture(t, func(r model.Request) model.Answer {
		names := []string{"find_page", "hidden_tool", "no_such_tool"}
		if n := gatewaytest.CountAnswers(r); n < len(names) {
			return gatewaytest.ToolCallAnswer(names[n], map[string]any{})
		}
		return gatewaytest.EndAnswer("done")
	})
	operator.AddTool(t, "vault", "hidden_tool")
	gatewaytest.GetJSON[client.AgentAnswer](t, caller, "POST /api/v1/agent", `{"question":"q","role":"clerk"}`)
	for _, tt := range []struct {
		f    *gatewaytest.Fixture
		by   []string
		want []string // tool, server and number of calls
	}{
		{operator, []string{"tool", "server"}, []string{"find_page|test|1", "hidden_tool|test|1", "no_such_tool||1", "||0"}},
		{caller, []string{"tool", "server"}, []string{"find_page|test|1", "hidden_tool||1", "no_such_tool||1", "||0"}},
		{operator, []string{"server"}, []string{"|test|2", "||1"}},
		{caller, []string{"server"}, []string{"|test|1", "||2"}},
	} {
		report, err := tt.f.LocalClient().FetchUsage(t.Context(), tt.by, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range report.Items {
			got = append(got, fmt.Sprintf("%s|%s|%d", row.Tool, row.Server, row.Calls.Total))
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("by %q: got %q, want %q", tt.by, got, tt.want)
		}
	}
}
