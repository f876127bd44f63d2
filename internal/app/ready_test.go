package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/wire"
)

// readyz sends GET /readyz as a client does, and returns the answer.
func (f *fixture) readyz() string {
	f.t.Helper()
	handler, err := f.Handler()
	if err != nil {
		f.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	f.whenReady(handler).ServeHTTP(w, httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, "/readyz", nil))
	return w.Body.String()
}

// A process says why it is not ready, from its start to its end, without waiting.
func TestReadyz_FollowsLifecycle(t *testing.T) {
	f := newFixture(t)
	want := func(text string) {
		t.Helper()
		if got := f.readyz(); !strings.Contains(got, text) {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	want(wire.UnreadyStarting)
	f.lifecycle.unresumed.Store(7)
	want("interrupted tasks that are not resumed yet: 7")
	f.lifecycle.unresumed.Store(0)
	f.MarkReady()
	want(`"status":"ready"`)
	f.MarkStopping()
	want(wire.UnreadyStopping)
	if got := f.unreadyCodes(); !slices.Equal(got, []string{wire.UnreadyStopping}) {
		t.Errorf("the metrics have the reasons %q", got)
	}
}

// A model that a role uses, and that has neither a key nor a fallback, is a reason. One that
// only stands in the configuration is not, and neither is one of several that are tried.
func TestReadyz_NamesModelsWithoutKey(t *testing.T) {
	f := newFixture(t)
	f.MarkReady()
	const (
		gpt    = "kind: model\nname: gpt\ntype: openai\nmodel: gpt-5\napiKey: ${NO_KEY}"
		script = "kind: model\nname: script\ntype: script\nfile: agents.js"
		first  = "kind: model\nname: first\ntype: first-available\nmodels: [gpt, script]"
	)
	for _, c := range []struct {
		docs []string
		want []string
	}{
		{[]string{gpt, script, "kind: organization\nname: o\nmodel: script"}, nil},
		{[]string{gpt, script, first, "kind: organization\nname: o\nmodel: first"}, nil},
		{[]string{gpt, script, "kind: organization\nname: o\nmodel: script", "kind: role\nname: r\nmodel: gpt"}, []string{"gpt"}},
	} {
		if err := f.ApplyConfig(t.Context(), f.read(c.docs...), nil); err != nil {
			t.Fatal(err)
		}
		if got := f.keylessModels(); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.docs, got, c.want)
		}
		if got := f.readyz(); strings.Contains(got, wire.UnreadyKey) != (c.want != nil) {
			t.Errorf("%q: %s", c.docs, got)
		}
	}
}

// Readiness needs no token, so the models without a key are looked for once for each
// configuration.
func TestReadyz_LooksForKeysOnce(t *testing.T) {
	f := newFixture(t)
	const gpt = "kind: model\nname: gpt\ntype: openai\nmodel: gpt-5\napiKey: ${NO_KEY}"
	if err := f.ApplyConfig(t.Context(), f.read(gpt, "kind: organization\nname: o\nmodel: gpt"), nil); err != nil {
		t.Fatal(err)
	}
	if got := f.keylessModels(); !slices.Equal(got, []string{"gpt"}) {
		t.Errorf("got %q", got)
	}
	if n := testing.AllocsPerRun(10, func() { f.keylessModels() }); n != 0 {
		t.Errorf("another request allocates %v times", n)
	}
}
