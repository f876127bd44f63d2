package hosts_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/org/hosts"
)

// The zero Authority stands for an error.
func TestParseAuthority(t *testing.T) {
	long := strings.Repeat("a", 255)
	for text, want := range map[string]hosts.Authority{
		"gw.example.com":          {Name: "gw.example.com"},
		"GW.example.com:1":        {Name: "gw.example.com", Port: "1"},
		"a_b.:00080":              {Name: "a_b.", Port: "00080"},
		"127.0.0.1:7464":          {Name: "127.0.0.1", Port: "7464"},
		"[::1]":                   {Name: "::1"},
		"[2001:DB8:0::1]:9":       {Name: "2001:db8::1", Port: "9"},
		"[::ffff:127.0.0.1]:7464": {Name: "127.0.0.1", Port: "7464"},
		long + ":12345":           {Name: long, Port: "12345"},
		long + "a:12345":          {},
		long + "a":                {},
		long:                      {Name: long},
		"":                        {},
		":80":                     {},
		"*.example.com":           {},
		"a b":                     {},
		"a/b":                     {},
		"a@b":                     {},
		"http://a":                {},
		"bücher.example":          {},
		"a:":                      {},
		"a:x":                     {},
		"a:-1":                    {},
		"a:123456":                {},
		"a:1:2":                   {},
		"::1":                     {},
		"[::1":                    {},
		"[::1]x:1":                {},
		"[::1]1":                  {},
		"[::1]:":                  {},
		"[::1%lo]":                {},
		"[127.0.0.1]":             {},
		"[a]":                     {},
		"[]":                      {},
		"[":                       {},
	} {
		if got, ok := hosts.ParseAuthority(text); ok != (want != hosts.Authority{}) || ok && got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, ok, want)
		}
	}
}

// The zero Origin stands for an error.
func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]hosts.Origin{
		"https://app.example.com":  {Scheme: "https", Host: hosts.Authority{Name: "app.example.com"}},
		"HTTP://LOCALHOST:6274":    {Scheme: "http", Host: hosts.Authority{Name: "localhost", Port: "6274"}},
		"http://[::1]:1":           {Scheme: "http", Host: hosts.Authority{Name: "::1", Port: "1"}},
		"https://a:443":            {Scheme: "https", Host: hosts.Authority{Name: "a"}},
		"http://[::1]:80":          {Scheme: "http", Host: hosts.Authority{Name: "::1"}},
		"https://a:80":             {Scheme: "https", Host: hosts.Authority{Name: "a", Port: "80"}},
		"http://a:443":             {Scheme: "http", Host: hosts.Authority{Name: "a", Port: "443"}},
		"https://a:0443":           {Scheme: "https", Host: hosts.Authority{Name: "a", Port: "0443"}},
		"":                         {},
		"null":                     {},
		"*":                        {},
		"app.example.com":          {},
		"://a":                     {},
		"ftp://a":                  {},
		"chrome-extension://a":     {},
		"https://":                 {},
		"https://a/":               {},
		"https://a/b":              {},
		"https://a?b":              {},
		"https://me@a":             {},
		"https://a https://a":      {},
		"https://https://a":        {},
		"https://a\nhttps://b.com": {},
	} {
		if got, ok := hosts.ParseOrigin(text); ok != (want != hosts.Origin{}) || ok && got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, ok, want)
		}
	}
}
