package builtin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

// stubContexts is a conversation of count messages.
type stubContexts struct {
	used, limit, count int
	summary            string
}

func (c *stubContexts) ContextUsage(context.Context, identity.AgentID) (int, int, error) {
	return c.used, c.limit, nil
}

func (c *stubContexts) CompressContext(_ context.Context, _ tool.Call, summary string, keep int) (Compression, error) {
	before := c.count
	if keep < before {
		c.count, c.summary = keep+1, summary
	}
	return Compression{keep < before, before, c.count}, nil
}

func contextFixture(t testing.TB, c *stubContexts) fixture {
	tools, err := contextTools(c)
	return newFixture(t, tools, err)
}

func TestCompressContext(t *testing.T) {
	for _, c := range []struct {
		name  string
		count int
		args  string
		want  string
	}{
		{"default keeps ten", 30, `{"summary":"s"}`, `{"ok":true,"compressed":true,"originalCount":30,"newCount":11}`},
		{"keeps the given number", 30, `{"summary":"s","keepRecentCount":3}`, `{"ok":true,"compressed":true,"originalCount":30,"newCount":4}`},
		{"keeps none", 30, `{"summary":"s","keepRecentCount":0}`, `{"ok":true,"compressed":true,"originalCount":30,"newCount":1}`},
		{"one message becomes one summary", 11, `{"summary":"s"}`, `{"ok":true,"compressed":true,"originalCount":11,"newCount":11}`},
		{"nothing to replace", 5, `{"summary":"s"}`, `{"ok":true,"compressed":false,"originalCount":5,"newCount":5}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := contextFixture(t, &stubContexts{count: c.count}).call(t, "compress_context", rawJSON(c.args))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompressContext_RejectsBlankSummary(t *testing.T) {
	for _, summary := range []string{"", " ", "\n\t\u00a0"} {
		c := &stubContexts{count: 30}
		k := contextFixture(t, c)
		if got := k.callCode(t, "compress_context", obj{"summary": summary}); got != errcode.InvalidSummary {
			t.Errorf("%q: code %q, want invalid_summary", summary, got)
		}
		if answer := k.call(t, "compress_context", obj{"summary": summary}); !strings.Contains(answer, `"ok":false`) {
			t.Errorf("%q: %s lacks ok:false", summary, answer)
		}
		if c.count != 30 {
			t.Errorf("%q: %d messages remain of 30", summary, c.count)
		}
	}
}

func TestContextStatus_Thresholds(t *testing.T) {
	for _, c := range []struct {
		used, limit   int
		status, share string
	}{
		{0, 128_000, "normal", "0.0%"},
		{15_744, 128_000, "normal", "12.3%"},
		{699_999, 1_000_000, "normal", "70.0%"},
		{700_000, 1_000_000, "warning", "70.0%"},
		{7, 10, "warning", "70.0%"},
		{89_600, 128_000, "warning", "70.0%"},
		{899_999, 1_000_000, "warning", "90.0%"},
		{9, 10, "critical", "90.0%"},
		{949_999, 1_000_000, "critical", "95.0%"},
		{19, 20, "exceeded", "95.0%"},
		{3, 2, "exceeded", "150.0%"},
		{5, 0, "normal", "0.0%"},
	} {
		got := statusOf(c.used, c.limit)
		if got.Status != c.status || got.Percent != c.share {
			t.Errorf("%d of %d: %s %s, want %s %s", c.used, c.limit, got.Status, got.Percent, c.status, c.share)
		}
	}
}

func TestContextStatus_Answer(t *testing.T) {
	got := contextFixture(t, &stubContexts{used: 32_000, limit: 128_000}).call(t, "get_context_status", obj{})
	want := `{"usedTokens":32000,"maxTokens":128000,"usagePercent":0.25,"usagePercentStr":"25.0%","status":"normal",` +
		`"thresholds":{"warning":0.7,"critical":0.9,"exceeded":0.95}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
