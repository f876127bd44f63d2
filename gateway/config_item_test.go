package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/runtime"
)

// keeper keeps items without looking at them, and rejects an empty text.
type keeper struct{ items []wire.ConfigItem }

func (k *keeper) ListItems() []wire.ConfigItem { return k.items }

func (k *keeper) ApplyItem(_ context.Context, kind, name, text string, from runtime.Requester) (wire.ConfigItem, error) {
	if text == "" {
		return wire.ConfigItem{}, errcode.New(errcode.InvalidConfig, "it is empty")
	}
	k.items = append(k.items, wire.ConfigItem{Kind: kind, Name: name, Status: wire.ItemActive, Digest: from.By.String() + " " + text})
	return k.items[len(k.items)-1], nil
}

func (k *keeper) UsesVariables(text string) bool { return strings.Contains(text, "${") }

func (k *keeper) DeleteItem(_ context.Context, kind, name string, _ runtime.Requester) (wire.ConfigItem, error) {
	at := slices.IndexFunc(k.items, func(i wire.ConfigItem) bool { return i.Kind == kind && i.Name == name })
	if at < 0 {
		return wire.ConfigItem{}, errcode.New(errcode.ItemNotFound, "no item")
	}
	i := k.items[at]
	k.items = slices.Delete(k.items, at, at+1)
	return i, nil
}

// newItemHandler returns a handler with a keeper.
func newItemHandler(t *testing.T) (*keeper, http.Handler) {
	t.Helper()
	k, f := &keeper{}, newFixture(t, gatewaytest.TeamModel)
	handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: auth.AlwaysOperator, Items: k})
	if err != nil {
		t.Fatal(err)
	}
	return k, gatewaytest.WithOpenAPICheck(t, handler)
}

// Items are applied, listed and deleted under names of all kinds.
func TestConfigItems_AreAppliedAndDeleted(t *testing.T) {
	_, handler := newItemHandler(t)
	api := client.NewLocal(auth.TrustLocalOwner(handler))
	for _, name := range []string{"tell-joke", "..", "a/b", "ü %2F ?#", "{name}"} {
		i, err := api.ApplyConfigItem(t.Context(), "tool-service", name, "text ${NAME}")
		if err != nil || i.Kind != "tool-service" || i.Name != name || i.Digest != "operator text ${NAME}" {
			t.Errorf("apply %q: %+v, %v", name, i, err)
		}
		for i, err := range api.ListConfigItems(t.Context()) {
			if err != nil || i.Name != name {
				t.Errorf("list %q: %+v, %v", name, i, err)
			}
		}
		if i, err := api.DeleteConfigItem(t.Context(), "tool-service", name); err != nil || i.Name != name {
			t.Errorf("delete %q: %+v, %v", name, i, err)
		}
		if _, err := api.DeleteConfigItem(t.Context(), "tool-service", name); errcode.CodeOf(err) != errcode.ItemNotFound {
			t.Errorf("delete %q again: %v", name, err)
		}
	}
	if _, err := api.ApplyConfigItem(t.Context(), "tool", "x", ""); errcode.CodeOf(err) != errcode.InvalidConfig {
		t.Errorf("an empty item: %v", err)
	}
}

// A request over a network cannot read the variables of this process through an item.
func TestConfigItems_NoVariablesOverNetwork(t *testing.T) {
	k, handler := newItemHandler(t)
	for text, status := range map[string]int{`{"text": "x"}`: 200, `{"text": "description: ${HOME}"}`: 403, `{"text": "description: \u0024{HOME}"}`: 403} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPut, "/api/v1/config/items/tool/"+url.PathEscape("x"), strings.NewReader(text))
		r.Header.Set("Content-Type", "application/json")
		if handler.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%s: %d %s, want %d", text, w.Code, w.Body, status)
		}
	}
	if len(k.items) != 1 {
		t.Errorf("applied: %+v", k.items)
	}
}

// A process without a keeper has no items and takes none.
func TestConfigItems_WithoutKeeper(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	api := f.LocalClient()
	for i, err := range api.ListConfigItems(t.Context()) {
		t.Errorf("listed %+v, %v", i, err)
	}
	if _, err := api.ApplyConfigItem(t.Context(), "tool", "x", "{}"); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("apply: %v", err)
	}
	if _, err := api.DeleteConfigItem(t.Context(), "tool", "x"); errcode.CodeOf(err) != errcode.ItemNotFound {
		t.Errorf("delete: %v", err)
	}
}
