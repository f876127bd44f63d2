package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/org/hosts"
)

// serveOn serves a handler on a listener until the test ends.
func serveOn(t testing.TB, l net.Listener, handler http.Handler) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// app is where a configured page comes from.
var app = hosts.Origin{Scheme: "https", Host: hosts.Authority{Name: "app.example.com"}}

func TestTheDoorLooksAtHostAndOrigin(t *testing.T) {
	h := open(t, team)
	_, me := holder("me", gateway.Token{Operator: true})
	var codes []errcode.Code
	url := reached(t, h, gateway.HostCheck{
		Hosts: []hosts.Authority{{Name: "gw.example.com"}, {Name: "port.example.com", Port: "8080"}, {Name: "2001:db8::1"}}, Origins: []hosts.Origin{app},
		Tokens: known(t, h, me), OnRefused: func(c errcode.Code) { codes = append(codes, c) },
	})
	address := strings.TrimPrefix(url, "http://")
	_, port, _ := net.SplitHostPort(address)
	for _, c := range []struct {
		name, host string
		origin     []string
		want       errcode.Code // "" is let through
	}{
		{"the address", address, nil, ""},
		{"localhost", "localhost:" + port, nil, ""},
		{"localhost in capitals", "LOCALHOST:" + port, nil, ""},
		{"another loopback address", "127.0.0.2:" + port, nil, ""},
		{"loopback of the other family", "[::1]:" + port, nil, ""},
		{"a configured name", "gw.example.com", nil, ""},
		{"a configured name at any port", "GW.example.com:1", nil, ""},
		{"a configured name and port", "port.example.com:8080", nil, ""},
		{"a configured name at another port", "port.example.com", nil, gateway.HostRefused},
		{"a configured address", "[2001:DB8:0::1]:9", nil, ""},
		{"a rebound name", "evil.example.com:" + port, nil, gateway.HostRefused},
		{"a name below a configured one", "a.gw.example.com", nil, gateway.HostRefused},
		{"a name that begins as localhost", "localhost.evil.example:" + port, nil, gateway.HostRefused},
		{"a name that ends as localhost", "evil.localhost:" + port, nil, gateway.HostRefused},
		{"another port", "127.0.0.1:1", nil, gateway.HostRefused},
		{"no port", "127.0.0.1", nil, gateway.HostRefused},
		{"the address as one number", "2130706433:" + port, nil, gateway.HostRefused},
		{"every address", "0.0.0.0:" + port, nil, gateway.HostRefused},
		{"its own page", address, []string{url}, ""},
		{"its own page by another name", "localhost:" + port, []string{url}, gateway.OriginRefused},
		{"its own page behind TLS", "gw.example.com", []string{"https://gw.example.com"}, ""},
		{"an allowed page", address, []string{"https://app.example.com"}, ""},
		{"an allowed page in the clear", address, []string{"http://app.example.com"}, gateway.OriginRefused},
		{"an allowed page at another port", address, []string{"https://app.example.com:444"}, gateway.OriginRefused},
		{"another page", address, []string{"https://evil.example.com"}, gateway.OriginRefused},
		{"another server on this host", address, []string{"http://127.0.0.1:1"}, gateway.OriginRefused},
		{"a page without an origin", address, []string{"null"}, gateway.OriginRefused},
		{"an empty origin", address, []string{""}, gateway.OriginRefused},
		{"two origins", address, []string{url, url}, gateway.OriginRefused},
		{"two origins in one", address, []string{url + " " + url}, gateway.OriginRefused},
		{"an origin with a path", address, []string{url + "/"}, gateway.OriginRefused},
		{"an extension's page", address, []string{"chrome-extension://" + address}, gateway.OriginRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := bearer("rc_me")
			header["Host"] = []string{c.host}
			if c.origin != nil {
				header["Origin"] = c.origin
			}
			codes = nil
			status, answered, body := answerTo(t, http.MethodGet, url+"/api/v1/roles", header, nil)
			switch {
			case c.want == "" && status != http.StatusOK:
				t.Errorf("got %d %s, want 200", status, body)
			case c.want != "" && (status != http.StatusForbidden || refused(t, body).Code != c.want || len(codes) != 1 || codes[0] != c.want):
				t.Errorf("got %d %s, counted %v, want 403 %s", status, body, codes, c.want)
			}
			if got := answered.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("a browser may guess the type: %q", got)
			}
		})
	}
}

func TestAnAllowedOriginMayReadAndIsToldWhat(t *testing.T) {
	h := open(t, team)
	_, me := holder("me", gateway.Token{Operator: true})
	const page = "https://app.example.com"
	url := reached(t, h, gateway.HostCheck{Origins: []hosts.Origin{app}, Tokens: known(t, h, me)})
	ask := http.Header{"Origin": {page}, "Access-Control-Request-Method": {"PATCH"}}
	status, header, _ := answerTo(t, http.MethodOptions, url+"/api/v1/roles", ask, nil)
	if status != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != page || header.Get("Access-Control-Allow-Credentials") != "" ||
		!strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(header.Get("Access-Control-Allow-Methods"), "PATCH") {
		t.Errorf("a preflight: %d %v", status, header)
	}
	read := bearer("rc_me")
	read["Origin"] = []string{page}
	if status, header, _ := answerTo(t, http.MethodGet, url+"/api/v1/roles", read, nil); status != http.StatusOK || header.Get("Access-Control-Allow-Origin") != page || header.Get("Vary") != "Origin" {
		t.Errorf("a look: %d %v", status, header)
	}
	if status, header, _ := answerTo(t, http.MethodGet, url+"/api/v1/roles", bearer("rc_me"), nil); status != http.StatusOK || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without an origin: %d %v", status, header)
	}
	if status, header, _ := answerTo(t, http.MethodOptions, url+"/api/v1/roles", http.Header{"Origin": {url}, "Access-Control-Request-Method": {"PATCH"}}, nil); status != http.StatusUnauthorized || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight of its own page: %d %v", status, header)
	}
}

func TestADoorWithoutAServersAddressTakesItsHostsAlone(t *testing.T) {
	h := open(t, team)
	behind := &house{handler: gateway.HostCheck{Hosts: []hosts.Authority{{}, {Name: "gw.example.com"}}}.Wrap(h.handler)}
	for host, want := range map[string]int{"gw.example.com": 200, "127.0.0.1": 403, "localhost": 403, "example.com": 403} {
		if status, _ := behind.ask(t, "http://"+host+"/healthz", ""); status != want {
			t.Errorf("%s: %d, want %d", host, status, want)
		}
	}
}

func TestBodiesThatAreTooMuchAreRefusedAndNothingElseIsDisturbed(t *testing.T) {
	h := open(t, team)
	_, me := holder("me", gateway.Token{Operator: true})
	url := reached(t, h, gateway.HostCheck{Tokens: known(t, h, me)})
	for _, c := range []struct {
		name string
		body io.Reader
		want int
		code errcode.Code
	}{
		{"10 MB", strings.NewReader(`{"role":"` + strings.Repeat("x", 10<<20) + `"}`), 413, gateway.BodyTooLarge},
		{"10 MB of unknown length", io.MultiReader(strings.NewReader(`{"role":"` + strings.Repeat("x", 10<<20) + `"}`)), 413, gateway.BodyTooLarge},
		{"deep lists", strings.NewReader(`{"role":` + strings.Repeat("[", 500_000)), 400, errcode.InvalidArguments},
		{"deep objects", strings.NewReader(strings.Repeat(`{"role":`, 100_000)), 400, errcode.InvalidArguments},
	} {
		status, _, body := answerTo(t, http.MethodPost, url+"/api/v1/can", bearer("rc_me"), c.body)
		if status != c.want || refused(t, body).Code != c.code {
			t.Errorf("%s: %d %.200s, want %d %s", c.name, status, body, c.want, c.code)
		}
	}
	big := bearer("rc_me")
	big["X-Big"] = []string{strings.Repeat("x", 100<<10)}
	if status, _, _ := answerTo(t, http.MethodGet, url+"/healthz", big, nil); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("100 kB of headers: %d, want 431", status)
	}
	if status, _, _ := answerTo(t, http.MethodPost, url+"/api/v1/can", bearer("rc_me"), strings.NewReader(`{"role":"root","tool":"create_role"}`)); status != http.StatusOK {
		t.Errorf("afterwards: %d, want 200", status)
	}
}

func TestAddressesThatOthersReachNeedTokens(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "localhost.example.com:0"} {
		l, err := gateway.ListenTCP(address, false)
		if errcode.Of(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), "kind: gateway") {
			t.Errorf("%s: got %v, want invalid_config", address, err)
		}
		if l != nil {
			l.Close()
		}
	}
	for _, address := range []string{"", "7464", "127.0.0.1", "::1"} {
		if _, err := gateway.ListenTCP(address, true); errcode.Of(err) != errcode.InvalidConfig {
			t.Errorf("%q: got %v, want invalid_config", address, err)
		}
	}
	l, err := gateway.ListenTCP("0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	h := open(t, team)
	serveOn(t, l, gateway.HostCheck{}.Wrap(h.handler))
	for host, want := range map[string]int{"127.0.0.1": 200, "192.0.2.1": 403, "0.0.0.0": 403} {
		status, _, body := answerTo(t, http.MethodGet, "http://127.0.0.1:"+port+"/healthz", http.Header{"Host": {host + ":" + port}}, nil)
		if status != want {
			t.Errorf("host %s: %d %s, want %d", host, status, body, want)
		}
	}
	if _, err := gateway.ListenTCP("127.0.0.1:"+port, false); err == nil || !strings.Contains(err.Error(), port) {
		t.Errorf("an address that is taken: %v", err)
	}
}

func TestATokenTravelsOnlyWhereNobodyReadsIt(t *testing.T) {
	for base, want := range map[string]bool{
		"http://127.0.0.1:7464": true, "http://localhost:7464/": true, "http://[::1]": true, "https://gw.example.com/team": true,
		"http://gw.example.com": false, "http://192.0.2.1": false, "http://localhost.example.com": false, "http://0.0.0.0": false,
		"ftp://127.0.0.1": false, "127.0.0.1:7464": false, "": false, "http://": false, "http://me:rc_x@127.0.0.1": false, "http://127.0.0.1/?token=rc_x": false, "http://127.0.0.1/#x": false,
	} {
		if _, err := gateway.Remote(base, "rc_x"); (err == nil) != want || err != nil && (errcode.Of(err) != errcode.InvalidArguments || strings.Contains(err.Error(), "rc_x")) {
			t.Errorf("%q: %v, want taken: %v", base, err, want)
		}
	}
	if _, err := gateway.Remote("http://gw.example.com", ""); err != nil {
		t.Errorf("without a token: %v", err)
	}
	if _, err := gateway.Remote("http://127.0.0.1", "a b"); err == nil || strings.Contains(err.Error(), "a b") {
		t.Errorf("what is no token: %v", err)
	}
}

// A client does not carry its token to where it is sent.
func TestAClientFollowsNoRedirect(t *testing.T) {
	asked := make(chan string, 10)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("Authorization")
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	c, err := gateway.Remote(atDoor(t, gateway.HostCheck{}, handler)+"/team/", "rc_x")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Role(t.Context(), "a"); err == nil {
		t.Error("no error")
	}
	if got := <-asked; got != "/team/api/v1/roles/a Bearer rc_x" || len(asked) > 0 {
		t.Errorf("asked for %s and %d more", got, len(asked))
	}
}

// As many are let in as there is room for; others wait until somebody leaves.
func TestWhoComesToAFullDoorWaits(t *testing.T) {
	l, err := gateway.ListenTCP("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	var let []net.Conn
	for range gateway.MaxConnections {
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		let = append(let, in)
	}
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	came := make(chan net.Conn, 1)
	go func() {
		in, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		came <- in
	}()
	if len(came) != 0 {
		t.Error("one more was let in")
	}
	for range 2 {
		_ = let[0].Close()
	}
	if in := <-came; in.RemoteAddr().String() != late.LocalAddr().String() {
		t.Errorf("%s was let in, want %s", in.RemoteAddr(), late.LocalAddr())
	} else {
		defer in.Close()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept() // full again
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("somebody was let in after the end")
	}
	for _, in := range let[1:] {
		in.Close()
	}
}
