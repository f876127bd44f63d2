package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/internal/config"
)

func TestNetworkPolicy_KeepsDefaults(t *testing.T) {
	compare := cmpopts.IgnoreFields(builtin.NetworkPolicy{}, "Private")
	if diff := cmp.Diff(networkPolicy(config.Network{}), builtin.PublicNetwork(), compare); diff != "" {
		t.Errorf("without a document, got before want:\n%s", diff)
	}
	none := 0
	got := networkPolicy(config.Network{AllowHTTP: true, MaxBody: 5, MaxRedirects: &none, Timeout: time.Second})
	want := builtin.PublicNetwork()
	want.AllowHTTP, want.MaxBody, want.MaxRedirects, want.Timeout = true, 5, 0, time.Second
	if diff := cmp.Diff(got, want, compare); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}
