package hosts_test

import (
	"testing"

	"github.com/rolecall/rolecall/org/hosts"
)

func TestIsLoopback(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "localhost.example.com": false, "example.com": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "127.0.0.1:80": false, "[::1]": false,
	} {
		if got := hosts.IsLoopback(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
