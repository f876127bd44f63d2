package gateway_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
)

// What a task does is shown for as long as who asked may see it.
func TestAStreamEndsWithItsToken(t *testing.T) {
	for _, c := range []struct {
		why    string
		end    func(all *gateway.Tokens) error
		result bool
	}{
		{"stays", func(*gateway.Tokens) error { return nil }, true},
		{"is taken back", func(all *gateway.Tokens) error { return all.Replace(nil) }, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			b, release := held()
			h := open(t, b)
			token, known := holder("ops", gateway.Token{Operator: true})
			all, err := gateway.NewTokens(gateway.TokensConfig{Role: h.rt.Org().FindRole, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Replace([]gateway.Token{known}); err != nil {
				t.Fatal(err)
			}
			handler, err := gateway.New(gateway.Config{Runtime: h.rt, Authenticate: all.Authenticate})
			if err != nil {
				t.Fatal(err)
			}
			url := atDoor(t, gateway.HostCheck{Tokens: all}, handler) + "/api/v1/tasks/" + string(h.start(t, "go")) + "/events?follow=1"
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
