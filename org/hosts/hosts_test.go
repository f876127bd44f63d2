package hosts_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/org/hosts"
)

func Example() {
	rule := hosts.HostRule{Allow: hosts.MustPatterns("api.example.com", "*.example.org:443"), Deny: hosts.MustPatterns("old.example.org")}
	for _, text := range []string{"https://API.example.com./v1", "https://a.b.example.org", "https://example.org", "https://old.example.org", "http://a.example.org"} {
		u, _ := url.Parse(text)
		host, _ := hosts.FromURL(u)
		fmt.Println(host, rule.AllowsHost(host))
	}
	// Output:
	// api.example.com:443 true
	// a.b.example.org:443 true
	// example.org:443 false
	// old.example.org:443 false
	// a.example.org:80 false
}

// An empty want stands for an error.
func TestCanonical(t *testing.T) {
	for host, want := range map[string]string{
		"example.com":              "example.com",
		"EXAMPLE.Com":              "example.com",
		"example.com.":             "example.com",
		"a_b.r3---sn.example.com":  "a_b.r3---sn.example.com",
		"localhost":                "localhost",
		"bücher.example":           "xn--bcher-kva.example",
		"BÜCHER。example":           "xn--bcher-kva.example",
		"xn--bcher-kva.example":    "xn--bcher-kva.example",
		"ⓔⓧⓐⓜⓟⓛⓔ.ⓒⓞⓜ":              "example.com",
		"straße.example":           "xn--strae-oqa.example",
		"127.0.0.1":                "127.0.0.1",
		"127.0.0.1.":               "127.0.0.1",
		"①②⑦.⓪.⓪.①":                "127.0.0.1",
		"１２７。０。０。１":                "127.0.0.1",
		"::1":                      "::1",
		"[::1]":                    "::1",
		"0:0:0:0:0:0:0:1":          "::1",
		"::ffff:127.0.0.1":         "127.0.0.1",
		"[0:0:0:0:0:ffff:a9fe:1]":  "169.254.0.1",
		"64:ff9b::7f00:1":          "64:ff9b::7f00:1",
		"::127.0.0.1":              "::7f00:1",
		"FD00::ABCD":               "fd00::abcd",
		"1.example":                "1.example",
		"":                         "",
		".":                        "",
		"..":                       "",
		"a..b":                     "",
		".a":                       "",
		"a b":                      "",
		"a/b":                      "",
		"a℀b":                      "", // becomes a/c
		"a@b":                      "",
		"a\x00b":                   "",
		"a%41":                     "",
		"\xff":                     "",
		"a\u202eb":                 "",
		"xn--a":                    "", // invalid Punycode
		"fe80::1%eth0":             "",
		"[::1":                     "",
		"[]":                       "",
		"[127.0.0.1]":              "",
		"::1]":                     "",
		"::12345":                  "",
		"[a.example]":              "",
		"127.1":                    "",
		"127.0.1":                  "",
		"2130706433":               "",
		"0x7f000001":               "",
		"0x7f.1":                   "",
		"0x":                       "",
		"0177.0.0.1":               "",
		"127.0.0.01":               "",
		"256.1.1.1":                "",
		"1.2.3.4.5":                "",
		"example.0x7f":             "",
		strings.Repeat("a", 63):    strings.Repeat("a", 63),
		strings.Repeat("a", 64):    "",
		strings.Repeat("a.", 128):  "",
		strings.Repeat("a.", 126):  strings.Repeat("a.", 125) + "a",
		"-a.example":               "-a.example",
		"a.example:80":             "",
		"user:password@a.example":  "",
		"metadata.google.internal": "metadata.google.internal",
	} {
		t.Run(host, func(t *testing.T) {
			got, err := hosts.CanonicalName(host)
			if err == nil && want == "" || err != nil && want != "" || err == nil && got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestFromURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example/x":           "a.example:443",
		"http://a.example":              "a.example:80",
		"https://a.example:8443":        "a.example:8443",
		"https://a.example:":            "a.example:443",
		"https://[::1]:1/":              "[::1]:1",
		"https://[::ffff:10.0.0.1]:80/": "10.0.0.1:80",
		"https://a.example:0":           "",
		"https://a.example:65536":       "",
		"ftp://a.example":               "", // no default port
		"https:///path":                 "",
	} {
		t.Run(text, func(t *testing.T) {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := hosts.FromURL(u)
			if err == nil && got.String() != want || err != nil && want != "" {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestParsePattern_RejectsMalformed(t *testing.T) {
	for _, text := range []string{
		"", "*.", "**", "*a.example", "a.*", "*.*.example", "a.example/x", "10.0.0.0/8", "https://a.example", "u@a.example",
		"*.10.0.0.1", "*.0.0.1", "*.::1", "*.[::1]", "a.example:0", "a.example:x", "a.example:", "*:70000", "127.1", "a b", "[::1]:+1",
	} {
		t.Run(text, func(t *testing.T) {
			if p, err := hosts.ParsePattern(text); err == nil {
				t.Errorf("%q became %q", text, p)
			}
		})
	}
}

func TestPattern_Matches(t *testing.T) {
	tests := []struct {
		pattern, host string
		port          uint16
		want          bool
	}{
		{"*", "a.example", 443, true},
		{"*", "::1", 1, true},
		{"*:443", "a.example", 443, true},
		{"*:443", "a.example", 80, false},
		{"*", "", 443, false},
		{"a.example", "a.example", 8443, true},
		{"A.Example.", "a.example", 443, true},
		{"a.example", "b.a.example", 443, false},
		{"a.example", "aa.example", 443, false},
		{"a.example:443", "a.example", 443, true},
		{"a.example:443", "a.example", 8443, false},
		{"*.a.example", "b.a.example", 443, true},
		{"*.a.example", "c.b.a.example", 443, true},
		{"*.a.example", "a.example", 443, false},
		{"*.a.example", "ba.example", 443, false},
		{"*.Bücher.example:443", "x.xn--bcher-kva.example", 443, true},
		{"10.0.0.1", "10.0.0.1", 443, true},
		{"::ffff:10.0.0.1", "10.0.0.1", 443, true},
		{"[::1]:443", "::1", 443, true},
		{"::1", "::1", 443, true},
		{"[::1]", "::1", 80, true},
		{"*.1.example", "10.0.0.1", 443, false},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.host, func(t *testing.T) {
			p, err := hosts.ParsePattern(tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.MatchesHost(hosts.Host{Name: tt.host, Port: tt.port}); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if (hosts.HostPattern{}).MatchesHost(hosts.Host{}) || (hosts.HostPattern{}).MatchesHost(hosts.Host{Name: "a", Port: 1}) {
		t.Error("the zero pattern matches")
	}
}

func TestRule_Allows(t *testing.T) {
	a := hosts.Host{Name: "a.example", Port: 443}
	for name, tt := range map[string]struct {
		rule hosts.HostRule
		want bool
	}{
		"zero rule":            {hosts.HostRule{}, false},
		"any":                  {hosts.AnyHost(), true},
		"any but this host":    {hosts.HostRule{Allow: hosts.MustPatterns("*"), Deny: hosts.MustPatterns("a.example")}, false},
		"any but another host": {hosts.HostRule{Allow: hosts.MustPatterns("*"), Deny: hosts.MustPatterns("b.example")}, true},
		"this host":            {hosts.HostRule{Allow: hosts.MustPatterns("b.example", "a.example")}, true},
		"deny only":            {hosts.HostRule{Deny: hosts.MustPatterns("b.example")}, false},
		"deny another port":    {hosts.HostRule{Allow: hosts.MustPatterns("*"), Deny: hosts.MustPatterns("*:80")}, true},
		"allow and deny":       {hosts.HostRule{Allow: hosts.MustPatterns("a.example"), Deny: hosts.MustPatterns("*.example")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.rule.AllowsHost(a); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRule_JSONRoundTrip(t *testing.T) {
	rule := hosts.HostRule{Allow: hosts.MustPatterns("*", "[::1]:443", "*.a.example:8443"), Deny: hosts.MustPatterns("b.example")}
	text, err := json.Marshal(rule)
	if want := `{"allow":["*","[::1]:443","*.a.example:8443"],"deny":["b.example"]}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var again hosts.HostRule
	if err := json.Unmarshal(text, &again); err != nil || !again.Equal(rule) {
		t.Errorf("got %v, %v, want %v", again, err, rule)
	}
	if err := json.Unmarshal([]byte(`{"allow":["http://a"]}`), &again); err == nil {
		t.Error("a malformed pattern was accepted")
	}
	copied := rule.Clone()
	copied.Allow[0].Name = "x"
	if rule.Allow[0].Name != "*" {
		t.Error("a clone shares the rule's list")
	}
}

func TestMustPatterns_PanicsOnMalformed(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "a b") {
			t.Errorf("got %q, want a panic that names the pattern", text)
		}
	}()
	hosts.MustPatterns("a b")
}

// A canonical host stays the same when it is canonicalized again. It is an address that
// netip parses, or a name that does not end in a number. The pattern with its text matches
// it; the pattern for the names below it does not.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"a.example", "BÜCHER。example.", "[::ffff:1.2.3.4]", "①②⑦.1", "0x7f.1", "xn--bcher-kva", "fe80::1%1", "a..b", "1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := hosts.CanonicalName(text)
		if err != nil {
			return
		}
		if again, err := hosts.CanonicalName(name); err != nil || again != name {
			t.Errorf("%q became %q and that %q, %v", text, name, again, err)
		}
		_, err = netip.ParseAddr(name)
		if digits := name[strings.LastIndex(name, ".")+1:]; err != nil && strings.Trim(digits, "0123456789") == "" {
			t.Errorf("%q became %q, which ends in a number and is not an address", text, name)
		}
		host := hosts.Host{Name: name, Port: 443}
		p, err := hosts.ParsePattern(host.String())
		if err != nil || !p.MatchesHost(host) || p.String() != host.String() {
			t.Errorf("the pattern of %q is %q, %v, and matches it: %v", host, p, err, p.MatchesHost(host))
		}
		if below, err := hosts.ParsePattern("*." + name); err == nil && below.MatchesHost(host) {
			t.Errorf("%q matches %q", below, name)
		}
	})
}

// Parsing the text of a pattern returns the same pattern.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"*", "*:1", "*.a.example", "a:80", "[::1]:443", "::1", "*.É.example:8443", "10.0.0.0/8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := hosts.ParsePattern(text)
		if err != nil {
			return
		}
		if again, err := hosts.ParsePattern(p.String()); err != nil || again != p {
			t.Errorf("%q became %+v, its text %q became %+v, %v", text, p, p.String(), again, err)
		}
	})
}
