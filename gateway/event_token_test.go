package gateway_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

// A stream of events ends when the token of its client is revoked.
func TestEvents_StreamEndsWithToken(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(all *auth.TokenStore) error
		result bool
	}{
		{"valid", func(*auth.TokenStore) error { return nil }, true},
		{"revoked", func(all *auth.TokenStore) error { return all.ReplaceTokens(nil) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, release := blockedTeamModel()
			f := newFixture(t, m)
			token, known := gatewaytest.NewToken("ops", auth.Token{Scope: auth.ScopeOperator})
			all, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.ReplaceTokens([]auth.Token{known}); err != nil {
				t.Fatal(err)
			}
			handler, err := gateway.New(gateway.Config{Runtime: f.Runtime, Authenticate: all.Authenticate})
			if err != nil {
				t.Fatal(err)
			}
			url := gatewaytest.ServeChecked(t, auth.HostCheck{Tokens: all}, handler) + "/api/v1/tasks/" + string(f.StartTask(t, "go")) + "/events?follow=1"
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var lines []string
			s := bufio.NewScanner(answer.Body)
			for s.Scan() {
				if lines = append(lines, s.Text()); len(lines) == 1 {
					if err := c.end(all); err != nil {
						t.Fatal(err)
					}
					close(release)
				}
			}
			whole := s.Err() == nil && strings.Contains(lines[len(lines)-1], `"type":"result"`)
			if whole != c.result {
				t.Errorf("the stream ended with %q, %v", lines, s.Err())
			}
		})
	}
}

// A stream of the organization's events ends when the token of its client is revoked, and
// does not look complete.
func TestOrgEvents_StreamEndsWithToken(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role := f.AddRole(t, "clerk", "artifact")
	token, known := gatewaytest.NewToken("ann", auth.Token{Scope: auth.ScopeRole, Role: role.ID})
	all, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: f.Runtime.Org().RoleByID, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := all.ReplaceTokens([]auth.Token{known}); err != nil {
		t.Fatal(err)
	}
	call := func() {
		invoke(t, f, identity.ByCaller("ann", role.ID), "run_command")
		if err := f.Runtime.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	call()
	server := httptest.NewServer(f.WithAuthenticator(t, all.Authenticate).Handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/events?follow=1&limit=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = sseHeader.Clone()
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	s, events := bufio.NewScanner(answer.Body), 0
	for s.Scan() {
		if !strings.HasPrefix(s.Text(), "data: ") {
			continue
		}
		if events++; events == 1 {
			if err := all.ReplaceTokens(nil); err != nil {
				t.Fatal(err)
			}
			call()
		}
	}
	if events != 1 || s.Err() == nil {
		t.Errorf("the stream ended with %v after %d events, want an error after one", s.Err(), events)
	}
}
