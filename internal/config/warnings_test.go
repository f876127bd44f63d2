package config_test

import (
	"strings"
	"testing"
)

// A model on this machine without a contextWindow is a warning.
func TestListWarnings_LoopbackWithoutWindow(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:11434/v1": true, "http://localhost:8080/v1": true, "http://[::1]:1": true, "http://127.9.9.9": true,
		"http://[::ffff:127.0.0.1]/v1": true, "https://api.example.com/v1": false, "http://10.0.0.1/v1": false, "http://localhost.example.com": false,
	} {
		cfg, err := read(t, "{kind: model, name: m, type: openai, model: x, baseURL: '"+address+"'}\n")
		if err != nil {
			t.Fatal(err)
		}
		list := cfg.ListWarnings()
		if got := len(list) == 1 && strings.HasPrefix(list[0], `model "m" has no contextWindow and is on this machine`); got != want || len(list) > 1 {
			t.Errorf("%s: got %q", address, list)
		}
		cfg, err = read(t, "{kind: model, name: m, type: openai, model: x, contextWindow: 9000, baseURL: '"+address+"'}\n")
		if list := cfg.ListWarnings(); err != nil || list != nil {
			t.Errorf("%s: got %q, %v", address, list, err)
		}
	}
}
