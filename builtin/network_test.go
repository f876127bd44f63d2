package builtin

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

// networkFixture is http_request with the policy, host rules and names of a test.
// It implements Hosts and Artifacts.
type networkFixture struct {
	fixture
	*httpClient
	policy       NetworkPolicy
	checkedHosts []string // caller and host of each call of MayReach
	deny         func(hosts.Host) bool
	stored       []Artifact
	storeErr     error // error of PutArtifact
}

// newNetworkFixture returns a fixture that may reach loopback, also over http. It
// resolves the given names; others are not found.
func newNetworkFixture(t testing.TB, names map[string]func() []netip.Addr) *networkFixture {
	t.Helper()
	w := &networkFixture{policy: PublicNetwork()}
	w.policy.AllowHTTP, w.policy.Private = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w.httpClient = &httpClient{hosts: w, artifacts: w, policy: func() NetworkPolicy { return w.policy }, resolver: resolver(t, names), slots: newRequestSlots(), conversions: newReadSlots()}
	tools, err := w.httpClient.tools()
	w.fixture = newFixture(t, tools, err)
	return w
}

func (w *networkFixture) MayReach(_ context.Context, by identity.Principal, h hosts.Host) error {
	w.checkedHosts = append(w.checkedHosts, by.String()+" "+h.String())
	if w.deny != nil && w.deny(h) {
		return errcode.New(errcode.HostBlocked, "no")
	}
	return nil
}

func (w *networkFixture) PutArtifact(_ context.Context, c tool.Call, a Artifact) (string, error) {
	w.stored = append(w.stored, a)
	return "artifact:" + string(c.ID), w.storeErr
}

func (w *networkFixture) GetArtifact(context.Context, tool.Call, string) (*Artifact, error) {
	return nil, nil
}

func (w *networkFixture) ListArtifacts(context.Context, tool.Call, string) (ArtifactPage, error) {
	return ArtifactPage{}, nil
}

// httpAnswer is the result of http_request, successful or not.
type httpAnswer struct {
	Status     int
	StatusText string
	Headers    map[string]string
	Body       json.RawMessage
	Encoding   string
	URL        string
	RequestID  string
	LatencyMs  *int
	Error      errcode.Code
	Message    string
	Limit      int
	ToolName   string
}

func (a httpAnswer) text(t testing.TB) string {
	t.Helper()
	var text string
	if err := json.Unmarshal(a.Body, &text); err != nil {
		t.Fatalf("body %s of %+v is not text", a.Body, a)
	}
	return text
}

func (w *networkFixture) send(t testing.TB, args obj) httpAnswer {
	return w.sendAs(t, identity.ByAgent(callerID), args)
}

func (w *networkFixture) sendAs(t testing.TB, by identity.Principal, args obj) httpAnswer {
	t.Helper()
	var a httpAnswer
	if err := json.Unmarshal(w.callAs(t, by, "http_request", args).JSON(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// wantCode checks the error code, and that the message contains the words.
func (a httpAnswer) wantCode(t testing.TB, code errcode.Code, words ...string) {
	t.Helper()
	if a.Error != code {
		t.Fatalf("got %q (%s), status %d, want %q", a.Error, a.Message, a.Status, code)
	}
	for _, word := range words {
		if !strings.Contains(a.Message, word) {
			t.Errorf("message %q lacks %q", a.Message, word)
		}
	}
}

// serve starts an HTTP server on loopback.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// serveRaw starts a TCP server that calls handle for each connection and closes it
// afterwards.
func serveRaw(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	return "http://" + l.Addr().String()
}

// port returns the port of a server's URL, with its colon.
func port(url string) string { return url[strings.LastIndex(url, ":"):] }

func addresses(addrs ...string) func() []netip.Addr {
	list := make([]netip.Addr, len(addrs))
	for i, text := range addrs {
		list[i] = netip.MustParseAddr(text)
	}
	return func() []netip.Addr { return list }
}

// resolver returns a resolver that queries a name server of the test.
func resolver(t testing.TB, names map[string]func() []netip.Addr) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		answerNames(server, names)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func answerNames(server net.PacketConn, names map[string]func() []netip.Addr) {
	for buf := make([]byte, 4096); ; {
		n, from, err := server.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		reply(&m, names)
		packed, err := m.Pack()
		if err != nil {
			continue
		}
		_, _ = server.WriteTo(packed, from)
	}
}

func reply(m *dnsmessage.Message, names map[string]func() []netip.Addr) {
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	give, known := names[strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")]
	if !known {
		if give, known = names["*"]; !known {
			m.RCode = dnsmessage.RCodeNameError
			return
		}
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}
	for _, addr := range give() {
		switch {
		case q.Type == dnsmessage.TypeA && addr.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
		case q.Type == dnsmessage.TypeAAAA && addr.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
}

// echoedRequest is a request as the server received it.
type echoedRequest struct {
	Method, Path, Host, Body string
	Headers                  map[string]string
}

// echo responds with the request as JSON.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(echoedRequest{r.Method, r.URL.RequestURI(), r.Host, string(body), joinHeaders(r.Header)})
}

func (a httpAnswer) echoed(t testing.TB) echoedRequest {
	t.Helper()
	var s echoedRequest
	if err := json.Unmarshal(a.Body, &s); err != nil || a.Error != "" {
		t.Fatalf("%v: %+v", err, a)
	}
	return s
}

func TestHTTPRequest_SendsArguments(t *testing.T) {
	w, s := newNetworkFixture(t, nil), serve(t, echo)
	host := strings.TrimPrefix(s.URL, "http://")
	plain := func(more map[string]string) map[string]string {
		h := map[string]string{"accept-encoding": "gzip", "user-agent": "rolecall", "connection": "close"}
		maps.Copy(h, more)
		return h
	}
	for _, c := range []struct {
		name string
		args obj
		want echoedRequest
	}{
		{"only a url", obj{"url": s.URL}, echoedRequest{"GET", "/", host, "", plain(nil)}},
		{"path and query", obj{"url": s.URL + "/a%2Fb/ü?q=%20x y&y=ä%2B+#frag"}, echoedRequest{"GET", "/a%2Fb/%C3%BC?q=%20x%20y&y=%C3%A4%2B+", host, "", plain(nil)}},
		{"text", obj{"url": s.URL, "method": "POST", "body": "hü\n"}, echoedRequest{"POST", "/", host, "hü\n", plain(map[string]string{"content-type": "text/plain; charset=utf-8", "content-length": "4"})}},
		{"empty text", obj{"url": s.URL, "method": "POST", "body": ""}, echoedRequest{"POST", "/", host, "", plain(map[string]string{"content-type": "text/plain; charset=utf-8", "content-length": "0"})}},
		{"object", obj{"url": s.URL, "method": "PUT", "body": obj{"a": 1.5}}, echoedRequest{"PUT", "/", host, `{"a":1.5}`, plain(map[string]string{"content-type": "application/json", "content-length": "9"})}},
		{"number", obj{"url": s.URL, "method": "PATCH", "body": 7}, echoedRequest{"PATCH", "/", host, `7`, plain(map[string]string{"content-type": "application/json", "content-length": "1"})}},
		{"null", obj{"url": s.URL, "method": "POST", "body": nil}, echoedRequest{"POST", "/", host, "", plain(map[string]string{"content-length": "0"})}},
		{"body with content type", obj{"url": s.URL, "method": "POST", "body": "a=b", "headers": obj{"content-TYPE": "application/x-www-form-urlencoded"}}, echoedRequest{"POST", "/", host, "a=b", plain(map[string]string{"content-type": "application/x-www-form-urlencoded", "content-length": "3"})}},
		{"body with GET", obj{"url": s.URL, "body": "x"}, echoedRequest{"GET", "/", host, "", plain(nil)}},
		{"body with DELETE", obj{"url": s.URL, "method": "DELETE", "body": "x"}, echoedRequest{"DELETE", "/", host, "", plain(nil)}},
		{"headers", obj{"url": s.URL, "method": "OPTIONS", "headers": obj{"X-A": " b ", "user-agent": "me"}}, echoedRequest{"OPTIONS", "/", host, "", plain(map[string]string{"x-a": "b", "user-agent": "me"})}},
		{"range", obj{"url": s.URL, "headers": obj{"range": "bytes=0-1"}}, echoedRequest{"GET", "/", host, "", plain(map[string]string{"range": "bytes=0-1", "accept-encoding": "identity"})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(w.send(t, c.args).echoed(t), c.want); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
		})
	}
}

func TestHTTPRequest_DecodesBody(t *testing.T) {
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	for _, c := range []struct {
		name, media, send, want string // want is the decoded body as JSON
	}{
		{"JSON", "application/json", ` {"a": [1, 1e3, "ü"]} `, `{"a":[1,1e3,"ü"]}`},
		{"JSON suffix", "application/problem+json; charset=utf-8", `{"a":null}`, `{"a":null}`},
		{"JSON with byte order mark", "application/json", "\ufeff[1]", `[1]`},
		{"JSON in UTF-16", "application/json; charset=utf-16le", "[\x001\x00]\x00", `[1]`},
		{"invalid JSON", "application/json", `{"a":1`, `"{\"a\":1"`},
		{"two JSON values", "application/json", `1,2`, `"1,2"`},
		{"JSON with duplicate key", "application/json", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`},
		{"JSON that closes the enclosing value", "application/json", `1],"status":[2`, `"1],\"status\":[2"`},
		{"JSON too deep for the result", "application/json", deep, `"` + deep + `"`},
		{"JSON declared as text", "text/plain", `[1]`, `"[1]"`},
		{"empty", "application/json", ``, `""`},
		{"text", "text/html; charset=UTF-8", "<p>ü</p>", `"<p>ü</p>"`},
		{"text without a type", "", "hello", `"hello"`},
		{"text declared as binary", "application/octet-stream", "a,b\n", `"a,b\n"`},
		{"text in Latin-1", "text/plain; charset=ISO-8859-1", "\xfc\x80", `"ü€"`},
		{"text in UTF-16 with byte order mark", "text/plain; charset=utf-16", "\xfe\xff\x00\xfc", `"ü"`},
		{"text in UTF-16", "text/plain; charset=utf-16be", "\x00\xfc", `"ü"`},
		{"text with invalid type", "text/html; =", "a", `"a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetworkFixture(t, nil)
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.media}
				_, _ = io.WriteString(w, c.send)
			})
			a := w.send(t, obj{"url": s.URL})
			if got, want := canonical(t, a.Body), canonical(t, []byte(c.want)); got != want || a.Status != 200 || a.StatusText != "OK" || w.stored != nil {
				t.Errorf("got %s of %+v, want %s", got, a, want)
			}
		})
	}
}

// canonical removes white space and HTML escapes from JSON.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(out.String())
}

func TestHTTPRequest_StoresBinaryAsArtifact(t *testing.T) {
	long := strings.Repeat("ü", maxInline/2) + "x"
	for _, c := range []struct{ name, media, send, mediaType string }{
		{"image", "image/png", "\x89PNG\r\n\x1a\n", "image/png"},
		{"image without a type", "", "\x89PNG\r\n\x1a\n", "image/png"},
		{"bytes declared as text", "text/plain; charset=utf-8", "\xff\xfe\xfd", "text/plain"},
		{"bytes declared as UTF-16", "text/plain; charset=utf-16le", "\x00\xd8\x00\x00", "text/plain"},
		{"unknown charset", "text/plain; charset=ebcdic", "\x81\x82", "text/plain"},
		{"valid UTF-8 with NUL", "application/octet-stream", "a\x00b", "application/octet-stream"},
		{"invalid type", "x y/z", "\xff", "application/octet-stream"},
		{"long text", "text/csv", long, "text/csv"},
		{"long JSON", "application/json", `"` + long + `"`, "application/json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetworkFixture(t, nil)
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.media}
				_, _ = io.WriteString(w, c.send)
			})
			a := w.send(t, obj{"url": s.URL + "/x"})
			want := fmt.Sprintf(`{"artifactRef":"artifact:call-1","size":%d,"mediaType":%q}`, len(c.send), c.mediaType)
			if string(a.Body) != want {
				t.Errorf("got %.200s %+v, want %s", a.Body, a.Message, want)
			}
			if len(w.stored) != 1 || w.stored[0].Type != c.mediaType || string(w.stored[0].Data) != c.send || string(w.stored[0].Meta) != `{"url":"`+s.URL+`/x"}` {
				t.Errorf("stored %.500v", w.stored)
			}

			a = w.sendAs(t, identity.ByCaller("u", "guest"), obj{"url": s.URL})
			text := a.text(t)
			if a.Encoding == inBase64 {
				data, _, err := decodeBase64(text)
				if err != nil || string(data) != c.send {
					t.Errorf("a caller without a task got %.100q, %v", text, err)
				}
			} else if !strings.HasSuffix(c.send, text) && c.send != `"`+text+`"` {
				t.Errorf("a caller without a task got the text %.100q", text)
			}
			if len(w.stored) != 1 {
				t.Error("an artifact was stored for a caller without a task")
			}
		})
	}
}

func decodeBase64(text string) ([]byte, string, error) {
	data, err := decodeContent(text, inBase64)
	return data, text, err
}

func TestHTTPRequest_FailsWhenArtifactCannotBeStored(t *testing.T) {
	w := newNetworkFixture(t, nil)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xff}) })
	w.storeErr = errcode.New(errcode.RateLimited, "full")
	w.send(t, obj{"url": s.URL}).wantCode(t, errcode.RateLimited, "full")
	w.storeErr = errors.New("disk /secret")
	w.send(t, obj{"url": s.URL}).wantCode(t, errcode.Internal, "log")
}

func TestHTTPRequest_EveryStatusIsAnAnswer(t *testing.T) {
	w := newNetworkFixture(t, nil)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("X-Many", "a")
		w.Header().Add("X-Many", "b")
		w.WriteHeader(status)
	})
	for status, text := range map[int]string{200: "OK", 204: "No Content", 304: "Not Modified", 404: "Not Found", 418: "I'm a teapot", 500: "Internal Server Error", 599: "", 300: "Multiple Choices", 302: "Found"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			a := w.send(t, obj{"url": fmt.Sprint(s.URL, "/", status), "method": method})
			if a.Error != "" || a.Status != status || a.StatusText != text || string(a.Body) != `""` || a.Headers["x-many"] != "a, b" || a.URL != "" {
				t.Errorf("%s %d: %+v", method, status, a)
			}
		}
	}
}

func TestHTTPRequest_HeadHasNoBody(t *testing.T) {
	w := newNetworkFixture(t, nil)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99999999999")
		w.Header().Set("Content-Encoding", "gzip")
	})
	a := w.send(t, obj{"url": s.URL, "method": "HEAD"})
	if a.Status != 200 || string(a.Body) != `""` || a.Headers["content-length"] != "99999999999" {
		t.Errorf("got %+v", a)
	}
}

func TestHTTPRequest_HasUniqueRequestID(t *testing.T) {
	w, s := newNetworkFixture(t, nil), serve(t, echo)
	ids := map[string]bool{}
	for _, url := range []string{s.URL, s.URL, "ftp://a", "https://unknown.test"} {
		a := w.send(t, obj{"url": url})
		if !regexp.MustCompile(`^req_[0-9a-z]+_[0-9]+$`).MatchString(a.RequestID) || a.LatencyMs == nil || ids[a.RequestID] {
			t.Errorf("%s: id %q, latency %v", url, a.RequestID, a.LatencyMs)
		}
		ids[a.RequestID] = true
	}
}

func TestHTTPRequest_RejectsURLs(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"*": addresses("127.0.0.1")})
	for url, code := range map[string]errcode.Code{
		"ftp://a.test/":               errcode.OnlyHTTPS,
		"file:///etc/passwd":          errcode.OnlyHTTPS,
		"gopher://a.test":             errcode.OnlyHTTPS,
		"javascript:alert(1)":         errcode.OnlyHTTPS,
		"//a.test/":                   errcode.OnlyHTTPS,
		"a.test":                      errcode.OnlyHTTPS,
		"":                            errcode.OnlyHTTPS,
		"https:":                      errcode.InvalidURL,
		"https://":                    errcode.InvalidURL,
		"https:///path":               errcode.InvalidURL,
		"https:a.test":                errcode.InvalidURL,
		"https://a b.test/":           errcode.InvalidURL,
		"https://a.test:port/":        errcode.InvalidURL,
		"https://a.test:0/":           errcode.InvalidURL,
		"https://a.test:99999/":       errcode.InvalidURL,
		"https://a.test:22/":          errcode.InvalidURL,
		"https://a.test:6379@b.test/": errcode.InvalidURL,
		"https://user@a.test/":        errcode.InvalidURL,
		"https://user:pass@a.test/":   errcode.InvalidURL,
		"https://@a.test/":            errcode.InvalidURL,
		"https://127.1/":              errcode.InvalidURL,
		"https://0x7f000001/":         errcode.InvalidURL,
		"https://2130706433/":         errcode.InvalidURL,
		"https://0177.0.0.1/":         errcode.InvalidURL,
		"https://[fe80::1%25lo]/":     errcode.InvalidURL,
		"https://[::1/":               errcode.InvalidURL,
		"https://a..test/":            errcode.InvalidURL,
		"https://a.test\\@b.test/":    errcode.InvalidURL,
		"https://a.test/\r\nHost: b":  errcode.InvalidURL,
		"https://a.test/%zz":          errcode.InvalidURL,
		"https://%61.test/":           errcode.InvalidURL,
		" https://a.test/":            errcode.InvalidURL,
	} {
		t.Run(url, func(t *testing.T) {
			a := w.send(t, obj{"url": url})
			a.wantCode(t, code, "http_request")
			if len(w.checkedHosts) > 0 {
				t.Errorf("MayReach was called for %v", w.checkedHosts)
			}
		})
	}
	w.send(t, obj{"url": "https://a.test/" + strings.Repeat("ü", maxTarget/6+1)}).wantCode(t, errcode.InvalidURL, "8192")
	w.policy.AllowHTTP = false
	w.send(t, obj{"url": "http://a.test/"}).wantCode(t, errcode.OnlyHTTPS, "https")
	w.send(t, obj{"url": "HTTP://a.test/"}).wantCode(t, errcode.OnlyHTTPS, "https")
}

func TestHTTPRequest_RejectsHeaders(t *testing.T) {
	w, s := newNetworkFixture(t, nil), serve(t, echo)
	for _, headers := range []obj{
		{"host": "b.test"}, {"HOST": "b.test"}, {"Content-Length": "5"}, {"transfer-encoding": "chunked"}, {"connection": "keep-alive"},
		{"keep-alive": "1"}, {"upgrade": "websocket"}, {"te": "trailers"}, {"trailer": "x"}, {"proxy-authorization": "x"}, {"Proxy-X": "x"},
		{"expect": "100-continue"}, {"accept-encoding": "br"}, {"http2-settings": "x"},
		{"x": "a\r\nHost: b"}, {"x": "a\nb"}, {"x": "a\x00"}, {"x\r\ny": "a"}, {"x y": "a"}, {"x:": "a"}, {"": "a"}, {"ü": "a"}, {"host ": "a"},
		{"x-a": "1", "X-A": "2"},
	} {
		t.Run(fmt.Sprint(headers), func(t *testing.T) {
			w.send(t, obj{"url": s.URL, "headers": headers}).wantCode(t, errcode.InvalidArguments, "header")
		})
	}
	if len(w.checkedHosts) > 0 {
		t.Errorf("MayReach was called for %v", w.checkedHosts)
	}
}

func TestHTTPRequest_ReadsPolicyAtEachCall(t *testing.T) {
	w, s := newNetworkFixture(t, nil), serve(t, echo)
	open := w.policy
	for _, c := range []struct {
		name   string
		change func(*NetworkPolicy)
		code   errcode.Code
	}{
		{"unchanged", func(*NetworkPolicy) {}, ""},
		{"http denied", func(p *NetworkPolicy) { p.AllowHTTP = false }, errcode.OnlyHTTPS},
		{"no private addresses", func(p *NetworkPolicy) { p.Private = nil }, errcode.AddressBlocked},
		{"other private address", func(p *NetworkPolicy) { p.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")} }, errcode.AddressBlocked},
		{"no hosts", func(p *NetworkPolicy) { p.Hosts = hosts.HostRule{} }, errcode.HostBlocked},
		{"other port", func(p *NetworkPolicy) { p.Hosts = hosts.HostRule{Allow: hosts.MustPatterns("127.0.0.1:1")} }, errcode.HostBlocked},
		{"host allowed", func(p *NetworkPolicy) { p.Hosts = hosts.HostRule{Allow: hosts.MustPatterns("127.0.0.1")} }, ""},
		{"host denied", func(p *NetworkPolicy) { p.Hosts.Deny = hosts.MustPatterns("::ffff:127.0.0.1") }, errcode.HostBlocked},
		{"zero timeout", func(p *NetworkPolicy) { p.Timeout = 0 }, errcode.RequestTimeout},
		{"zero body size", func(p *NetworkPolicy) { p.MaxBody = 0 }, errcode.ResultTooLarge},
		{"zero policy", func(p *NetworkPolicy) { *p = NetworkPolicy{} }, errcode.OnlyHTTPS},
		{"unchanged again", func(*NetworkPolicy) {}, ""},
	} {
		w.policy = open
		c.change(&w.policy)
		if a := w.send(t, obj{"url": s.URL}); a.Error != c.code {
			t.Errorf("%s: got %q (%s), want %q", c.name, a.Error, a.Message, c.code)
		}
	}
	tools, err := networkTools(w, w, nil)
	if got := newFixture(t, tools, err).callCode(t, "http_request", obj{"url": s.URL}); got != errcode.ToolUnavailable {
		t.Errorf("without a policy: %q, want tool_unavailable", got)
	}
	tools, err = networkTools(w, w, func() NetworkPolicy { return NetworkPolicy{} })
	if got := newFixture(t, tools, err).callCode(t, "http_request", obj{"url": "https://127.0.0.1"}); got != errcode.HostBlocked {
		t.Errorf("with the zero policy: %q, want host_blocked", got)
	}
}

func TestHTTPRequest_ChecksEveryHopForCaller(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"a.test": addresses("127.0.0.1"), "b.test": addresses("127.0.0.1")})
	var hits atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if strings.HasPrefix(r.Host, "a.test") {
			http.Redirect(w, r, "http://B.test."+port(r.Host)+"/next", http.StatusFound)
		}
	})
	p := port(s.URL)
	a := w.send(t, obj{"url": "http://A.TEST" + p})
	if a.Status != 200 || a.URL != "http://b.test"+p+"/next" {
		t.Errorf("got %+v", a)
	}
	if diff := cmp.Diff(w.checkedHosts, []string{"agent:ann a.test" + p, "agent:ann b.test" + p}); diff != "" {
		t.Errorf("checked hosts, got before want:\n%s", diff)
	}
	hits.Store(0)
	w.deny = func(h hosts.Host) bool { return h.Name == "b.test" }
	w.send(t, obj{"url": "http://a.test" + p}).wantCode(t, errcode.HostBlocked)
	w.deny, w.policy.Hosts = nil, hosts.HostRule{Allow: hosts.MustPatterns("a.test")}
	w.send(t, obj{"url": "http://a.test" + p}).wantCode(t, errcode.HostBlocked, "b.test", "a.test"+p+" redirects there")
	if got := hits.Load(); got != 2 {
		t.Errorf("the server was reached %d times, want twice: b.test was blocked", got)
	}
}

// redirector redirects /a to the result of to, and echoes other requests.
func redirector(status int, to func(host string) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a" {
			echo(w, r)
			return
		}
		w.Header().Set("Location", to(r.Host))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "moved")
	}
}

func TestRedirect_ChangesMethodLikeBrowsers(t *testing.T) {
	for _, c := range []struct {
		status       int
		method, want string
		body         bool
	}{
		{301, "GET", "GET", false}, {302, "GET", "GET", false}, {303, "GET", "GET", false}, {307, "GET", "GET", false}, {308, "GET", "GET", false},
		{301, "POST", "GET", false}, {302, "POST", "GET", false}, {303, "POST", "GET", false}, {307, "POST", "POST", true}, {308, "POST", "POST", true},
		{301, "PUT", "PUT", true}, {302, "PUT", "PUT", true}, {303, "PUT", "GET", false}, {307, "PATCH", "PATCH", true},
		{302, "DELETE", "DELETE", false}, {303, "DELETE", "GET", false}, {303, "HEAD", "HEAD", false},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.method), func(t *testing.T) {
			w := newNetworkFixture(t, nil)
			var got []string
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = append(got, fmt.Sprintf("%s %s %s %q", r.Method, r.URL.Path, body, r.Header.Get("Content-Type")))
				redirector(c.status, func(string) string { return "b" })(w, r)
			})
			a := w.send(t, obj{"url": s.URL + "/a", "method": c.method, "body": "x", "headers": obj{"x": "y"}})
			want := c.want + ` /b  ""`
			if c.body {
				want = c.want + ` /b x "text/plain; charset=utf-8"`
			}
			if len(got) != 2 || got[1] != want || a.Status != 200 || a.URL != s.URL+"/b" {
				t.Errorf("got %q, %+v, want %q", got, a, want)
			}
		})
	}
}

func TestRedirect_DropsHeadersForOtherHosts(t *testing.T) {
	headers := obj{"Authorization": "Bearer s", "Cookie": "s=1", "X-Api-Key": "s", "Accept": "text/csv", "User-Agent": "me", "Content-Type": "text/x"}
	plain := map[string]string{"accept-encoding": "gzip", "user-agent": "rolecall", "connection": "close", "content-length": "1", "content-type": "text/x"}
	whole := map[string]string{"accept-encoding": "gzip", "user-agent": "me", "connection": "close", "content-length": "1", "content-type": "text/x",
		"authorization": "Bearer s", "cookie": "s=1", "x-api-key": "s", "accept": "text/csv"}
	other := serve(t, echo)
	for _, c := range []struct {
		name string
		to   func(host string) string
		want map[string]string
	}{
		{"same host", func(host string) string { return "http://" + host + "/b" }, whole},
		{"same host in upper case", func(host string) string {
			return "http://" + strings.ToUpper(strings.Split(host, ":")[0]) + port(host) + "/b"
		}, whole},
		{"other host", func(host string) string { return "http://b.test" + port(host) + "/b" }, plain},
		{"subdomain", func(host string) string { return "http://x.a.test" + port(host) + "/b" }, plain},
		{"other port", func(string) string { return "http://a.test" + port(other.URL) + "/b" }, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetworkFixture(t, map[string]func() []netip.Addr{"*": addresses("127.0.0.1")})
			s := serve(t, redirector(307, c.to))
			a := w.send(t, obj{"url": "http://a.test" + port(s.URL) + "/a", "method": "POST", "headers": headers, "body": "x"})
			if diff := cmp.Diff(a.echoed(t).Headers, c.want); diff != "" {
				t.Errorf("got before want:\n%s", diff)
			}
		})
	}
}

// Dropped headers stay dropped when a later hop returns to the first host.
func TestRedirect_DroppedHeadersStayDropped(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"*": addresses("127.0.0.1")})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "http://b.test"+port(r.Host)+"/b", http.StatusFound)
		case "/b":
			http.Redirect(w, r, "http://a.test"+port(r.Host)+"/c", http.StatusFound)
		default:
			echo(w, r)
		}
	})
	got := w.send(t, obj{"url": "http://a.test" + port(s.URL) + "/a", "headers": obj{"authorization": "s"}}).echoed(t)
	if got.Headers["authorization"] != "" || !strings.HasPrefix(got.Host, "a.test") {
		t.Errorf("got %+v", got)
	}
}

func TestRedirect_RejectsTargets(t *testing.T) {
	var inside atomic.Int32
	secret := serve(t, func(http.ResponseWriter, *http.Request) { inside.Add(1) })
	for _, c := range []struct {
		name, to string
		code     errcode.Code
		words    string
	}{
		{"private address", "http://127.0.0.9" + port(secret.URL), errcode.AddressBlocked, "127.0.0.9"},
		{"name of a private address", "http://inside.test" + port(secret.URL), errcode.AddressBlocked, "inside.test"},
		{"IPv4-mapped private address", "http://[::ffff:127.0.0.9]" + port(secret.URL), errcode.AddressBlocked, "127.0.0.9"},
		{"metadata address", "http://169.254.169.254/latest/", errcode.AddressBlocked, "169.254.169.254"},
		{"metadata address as a number", "http://2852039166/latest/", errcode.InvalidURL, "redirects there"},
		{"user name", "http://u:p@a.test/", errcode.InvalidURL, "redirects there"},
		{"file", "file:///etc/passwd", errcode.OnlyHTTPS, "redirects there"},
		{"invalid URL", "http://[", errcode.InvalidURL, "invalid URL"},
		{"port of another protocol", "http://a.test:25/", errcode.InvalidURL, "25"},
		{"redirect loop", "/a", errcode.ToolExecutionFailed, "more than 10 redirects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetworkFixture(t, map[string]func() []netip.Addr{"a.test": addresses("127.0.0.1"), "inside.test": addresses("127.0.0.9")})
			w.policy.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
			s := serve(t, redirector(302, func(string) string { return c.to }))
			w.send(t, obj{"url": "http://a.test" + port(s.URL) + "/a"}).wantCode(t, c.code, c.words)
		})
	}
	if got := inside.Load(); got != 0 {
		t.Errorf("%d requests reached the internal server", got)
	}
}

func TestRedirect_RejectsDowngradeToHTTP(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"example.com": addresses("127.0.0.1")})
	w.policy.AllowHTTP = false
	plain := serve(t, echo)
	secure := httptest.NewTLSServer(redirector(302, func(string) string { return plain.URL }))
	t.Cleanup(secure.Close)
	w.roots = x509.NewCertPool()
	w.roots.AddCert(secure.Certificate())
	w.send(t, obj{"url": "https://example.com" + port(secure.URL) + "/a"}).wantCode(t, errcode.OnlyHTTPS, "redirects there")
	got := w.send(t, obj{"url": "https://example.com" + port(secure.URL) + "/b"}).echoed(t)
	if got.Path != "/b" || got.Host != "example.com"+port(secure.URL) {
		t.Errorf("got %+v", got)
	}
	w.policy.AllowHTTP = true // headers of an https request are not sent over http
	a := w.send(t, obj{"url": "https://example.com" + port(secure.URL) + "/a", "headers": obj{"authorization": "s"}})
	if got := a.echoed(t).Headers["authorization"]; got != "" {
		t.Errorf("http got %q", got)
	}
}

// schemeListener accepts connections with and without TLS on one port.
type schemeListener struct {
	net.Listener
	tls *tls.Config
}

// Accept implements net.Listener. A client that begins with a handshake gets TLS.
func (l schemeListener) Accept() (net.Conn, error) {
	const handshake = 0x16
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := bufferedConn{conn, bufio.NewReader(conn)}
	if first, err := c.in.Peek(1); err == nil && first[0] == handshake {
		return tls.Server(c, l.tls), nil
	}
	return c, nil
}

// bufferedConn is a connection whose first bytes were read ahead.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

// Read implements net.Conn.
func (c bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }

// A redirect from https to http is one to another server even if host and port are the
// same: the headers of the model are not sent in clear text.
func TestRedirect_DropsHeadersForHTTPOnSamePort(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"example.com": addresses("127.0.0.1")})
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	w.roots = x509.NewCertPool()
	w.roots.AddCert(secure.Certificate())
	both := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && r.URL.Path == "/down" {
			http.Redirect(out, r, "http://"+r.Host+"/here", http.StatusFound)
			return
		}
		if r.URL.Path == "/stay" {
			http.Redirect(out, r, "/here", http.StatusFound)
			return
		}
		echo(out, r)
	}))
	both.Listener = schemeListener{both.Listener, secure.TLS}
	both.Start()
	t.Cleanup(both.Close)
	for path, want := range map[string]string{"/down": "", "/stay": "s"} {
		a := w.send(t, obj{"url": "https://example.com" + port(both.URL) + path, "headers": obj{"authorization": "s"}})
		if got := a.echoed(t); got.Path != "/here" || got.Headers["authorization"] != want {
			t.Errorf("%s: got %+v, want the header %q", path, got, want)
		}
	}
}

func TestHTTPRequest_VerifiesCertificate(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"other.test": addresses("127.0.0.1")})
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	w.send(t, obj{"url": s.URL}).wantCode(t, errcode.ToolExecutionFailed, "certificate")
	w.roots = x509.NewCertPool()
	w.roots.AddCert(s.Certificate())
	w.send(t, obj{"url": s.URL}).echoed(t)
	w.send(t, obj{"url": "https://other.test" + port(s.URL)}).wantCode(t, errcode.ToolExecutionFailed, "certificate")
}

// Addresses are checked when they are dialled, so a name that resolves to another
// address later is blocked.
func TestHTTPRequest_BlocksDNSRebinding(t *testing.T) {
	var inside atomic.Int32
	outer := serve(t, redirector(302, func(host string) string { return "http://" + host + "/b" }))
	l, err := net.Listen("tcp", "127.0.0.9"+port(outer.URL))
	if err != nil {
		t.Skip("cannot listen on 127.0.0.9: ", err)
	}
	inner := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inside.Add(1); echo(w, r) }))
	inner.Listener.Close()
	inner.Listener = l
	inner.Start()
	t.Cleanup(inner.Close)

	var lookups atomic.Int32
	names := map[string]func() []netip.Addr{"rebind.test": func() []netip.Addr {
		if lookups.Add(1) <= 2 { // one query per address family
			return addresses("127.0.0.1")()
		}
		return addresses("127.0.0.9")()
	}}
	w := newNetworkFixture(t, names)
	w.policy.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // stands for a public address
	w.send(t, obj{"url": "http://rebind.test" + port(outer.URL) + "/a"}).wantCode(t, errcode.AddressBlocked, "rebind.test")
	if got := inside.Load(); got != 0 || lookups.Load() <= 2 {
		t.Errorf("%d requests reached the internal server after %d lookups", got, lookups.Load())
	}
	lookups.Store(0)
	w.policy.Private = append(w.policy.Private, netip.MustParsePrefix("127.0.0.9/32"))
	if w.send(t, obj{"url": "http://rebind.test" + port(outer.URL) + "/a"}).echoed(t); inside.Load() != 1 {
		t.Error("with both addresses allowed the internal server is not reached: the test proves nothing")
	}
}

func TestHTTPRequest_UsesPublicAddressOfMixedName(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"both.test": addresses("10.255.255.1", "127.0.0.9", "127.0.0.1")})
	w.policy.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	s := serve(t, echo)
	w.send(t, obj{"url": "http://both.test" + port(s.URL)}).echoed(t)
}

func TestHTTPRequest_ErrorsHideInternalAddresses(t *testing.T) {
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"inside.test": addresses("10.11.12.13"), "none.test": addresses()})
	closed := serveRaw(t, func(net.Conn) {})
	for url, words := range map[string]string{
		"https://inside.test/secret":      "not public",
		"https://unknown.test/":           "cannot be found",
		"https://none.test/":              "cannot be found",
		"http://127.0.0.1" + port(closed): "broke",
	} {
		a := w.send(t, obj{"url": url})
		if a.Error == "" || !strings.Contains(a.Message, words) {
			t.Errorf("%s: %q, want %q", url, a.Message, words)
		}
		if leak := regexp.MustCompile(`10\.11|lookup|dial|127\.0\.0\.1:\d+:|server misbehaving|EOF`).FindString(a.Message); leak != "" {
			t.Errorf("%s: message %q contains %q", url, a.Message, leak)
		}
	}
}

func TestHTTPRequest_IgnoresProxyEnvironment(t *testing.T) {
	var proxied atomic.Int32
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	w := newNetworkFixture(t, map[string]func() []netip.Addr{"a.test": addresses("127.0.0.1")})
	s := serve(t, echo)
	w.send(t, obj{"url": "http://a.test" + port(s.URL)}).echoed(t)
	if proxied.Load() != 0 {
		t.Error("the proxy was used")
	}
}

func TestHTTPRequest_SharesNoConnectionOrCookie(t *testing.T) {
	w := newNetworkFixture(t, nil)
	var mu sync.Mutex
	peers := map[string]bool{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		peers[r.RemoteAddr] = true
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
			return
		}
		echo(w, r)
	})
	for range 3 {
		a := w.send(t, obj{"url": s.URL + "/a"})
		if got := a.echoed(t).Headers["cookie"]; got != "" || !strings.HasPrefix(a.Headers["set-cookie"], "id=1") {
			t.Errorf("sent cookie %q, response set %q", got, a.Headers["set-cookie"])
		}
	}
	if len(peers) != 6 {
		t.Errorf("%d connections for 6 requests", len(peers))
	}
}

// An external caller gets the whole body inline, and no result has more than 4 MiB. A larger
// body is not read to its end, nor converted.
func TestHTTPRequest_LimitsInlineBodyOfCaller(t *testing.T) {
	caller := identity.ByCaller("u", "guest")
	for _, c := range []struct {
		name, body string
		fits       bool
	}{
		{"4 MiB of text", strings.Repeat("a", 4<<20-2), true},
		{"more than 4 MiB", strings.Repeat("a", 4<<20+1), false},
		{"more than 4 MiB as JSON", strings.Repeat("\x01", 1<<20), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := newNetworkFixture(t, nil), serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.body) })
			w.hosts = anyHost{}
			a := w.sendAs(t, caller, obj{"url": s.URL})
			if c.fits {
				if got := a.text(t); got != c.body {
					t.Errorf("got %d bytes, want %d", len(got), len(c.body))
				}
				return
			}
			a.wantCode(t, errcode.ResultTooLarge, "4194304 bytes", "ask for less")
			if a.Limit != 4<<20 {
				t.Errorf("limit %d", a.Limit)
			}
		})
	}
}

func TestHTTPRequest_LimitsBodySize(t *testing.T) {
	const limit = 1000
	compressed := func(n int) string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(bytes.Repeat([]byte("a"), n))
		_ = z.Close()
		return out.String()
	}
	body := func(coding, text string, known bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
			}
			if !known {
				w.WriteHeader(200)
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, text)
		}
	}
	endless := func(coding string, part []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			for r.Context().Err() == nil {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}
	}
	empty := compressed(0)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		size    int // of an accepted body; -1 if it is rejected
	}{
		{"body at the limit", body("", strings.Repeat("a", limit), true), limit},
		{"body over the limit", body("", strings.Repeat("a", limit+1), true), -1},
		{"chunked body at the limit", body("", strings.Repeat("a", limit), false), limit},
		{"chunked body over the limit", body("", strings.Repeat("a", limit+1), false), -1},
		{"gzip body at the limit", body("gzip", compressed(limit), true), limit},
		{"gzip body over the limit", body("gzip", compressed(limit+1), true), -1},
		{"gzip bomb", body("x-gzip", compressed(16<<20), true), -1},
		{"chunked gzip bomb", body("GZIP", compressed(16<<20), false), -1},
		{"empty gzip body", body("gzip", "", true), 0},
		{"chunked empty gzip body", body("gzip", "", false), 0},
		{"endless body", endless("", bytes.Repeat([]byte("a"), 4096)), -1},
		{"endless empty gzip members", endless("gzip", []byte(empty)), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := newNetworkFixture(t, nil), serve(t, c.handler)
			w.policy.MaxBody = limit
			a := w.send(t, obj{"url": s.URL})
			if c.size < 0 {
				a.wantCode(t, errcode.ResultTooLarge, "1000 bytes", "ask for less")
				if a.Limit != limit || w.stored != nil {
					t.Errorf("limit %d, stored %v", a.Limit, w.stored)
				}
				return
			}
			if got := a.text(t); len(got) != c.size || c.size > 0 && a.Headers["content-encoding"] != "" {
				t.Errorf("got %d bytes %+v, want %d", len(got), a.Headers, c.size)
			}
		})
	}
}

func TestHTTPRequest_RejectsInvalidGzip(t *testing.T) {
	for _, text := range []string{"plain text", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"} {
		w := newNetworkFixture(t, nil)
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, text)
		})
		w.send(t, obj{"url": s.URL}).wantCode(t, errcode.ToolExecutionFailed, "complete")
	}
}

func TestHTTPRequest_RejectsTruncatedBody(t *testing.T) {
	w := newNetworkFixture(t, nil)
	url := serveRaw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
	})
	w.send(t, obj{"url": url}).wantCode(t, errcode.ToolExecutionFailed, "broke")
	w.send(t, obj{"url": url, "method": "POST"}).wantCode(t, errcode.ToolExecutionFailed, "whether the POST was carried out is not known")
}

func TestHTTPRequest_LimitsHeaderSize(t *testing.T) {
	for name, part := range map[string]string{
		"many headers":         "X-A: " + strings.Repeat("a", 1000) + "\r\n",
		"endless header":       strings.Repeat("a", 1000),
		"endless early hints":  "\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n",
		"endless blank lines":  "\r\n\r\n",
		"endless zero bytes":   "\x00",
		"endless 100 Continue": "\r\nHTTP/1.1 100 Continue\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newNetworkFixture(t, nil)
			url := serveRaw(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096))
				_, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n")
				for n := 0; err == nil; n++ {
					_, err = io.WriteString(c, part)
				}
			})
			a := w.send(t, obj{"url": url})
			if a.Error != errcode.ResultTooLarge && a.Error != errcode.ToolExecutionFailed || a.Status != 0 {
				t.Errorf("got %+v", a)
			}
			if strings.Contains(name, "header") {
				a.wantCode(t, errcode.ResultTooLarge, "headers", "65536")
			}
		})
	}
}

// The deadline covers everything up to the last byte of the response.
func TestHTTPRequest_DeadlineCoversWholeAnswer(t *testing.T) {
	dribble := func(c net.Conn, text string) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
				return
			}
			<-tick.C
		}
	}
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	for name, respond := range map[string]func(net.Conn){
		"before the header": silent,
		"in the header":     func(c net.Conn) { dribble(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 4000)) },
		"between header and body": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
			silent(c)
		},
		"in the body": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
			dribble(c, "a")
		},
		"in a chunked body": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			dribble(c, "1\r\na\r\n")
		},
		"in a gzip body": func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff")
			dribble(c, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNetworkFixture(t, nil)
			url := serveRaw(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096))
				respond(c)
			})
			w.send(t, obj{"url": url, "timeoutMs": 60, "method": "PUT"}).wantCode(t, errcode.RequestTimeout, "60 ms", "whether the PUT was carried out")
			w.policy.Timeout = 50 * time.Millisecond
			w.send(t, obj{"url": url}).wantCode(t, errcode.RequestTimeout, "50 ms")
		})
	}
	t.Run("in the TLS handshake", func(t *testing.T) {
		w := newNetworkFixture(t, nil)
		url := serveRaw(t, silent)
		w.send(t, obj{"url": "https" + strings.TrimPrefix(url, "http"), "timeoutMs": 60}).wantCode(t, errcode.RequestTimeout)
	})
	t.Run("across redirects", func(t *testing.T) {
		w := newNetworkFixture(t, nil)
		w.policy.MaxRedirects = 1 << 30
		s := serve(t, redirector(302, func(string) string { return "/a" }))
		w.send(t, obj{"url": s.URL + "/a", "timeoutMs": 100}).wantCode(t, errcode.RequestTimeout)
	})
}

func TestHTTPRequest_CancelledCallAbortsRequest(t *testing.T) {
	w := newNetworkFixture(t, nil)
	gone := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
		close(gone)
	})
	_, err := w.httpClient.send(ctx, httpRequest{URL: s.URL})
	if got := errcode.CodeOf(err); got != errcode.RequestAborted {
		t.Errorf("got %v, want request_aborted", err)
	}
	<-gone
}

func TestRedirect_LimitIsConfigurable(t *testing.T) {
	for limit := range 3 {
		w := newNetworkFixture(t, nil)
		w.policy.MaxRedirects = limit
		var hits int
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if hits++; hits <= 2 {
				http.Redirect(w, r, "/again", http.StatusFound)
			}
		})
		a := w.send(t, obj{"url": s.URL})
		if want := limit == 2; (a.Error == "") != want || hits != limit+1 {
			t.Errorf("with %d: %q after %d requests", limit, a.Error, hits)
		}
	}
}

// FuzzNewHop checks that an accepted URL is sent as it was checked: over https, to
// the host that the rules are applied to, and without a user name. Parsing it
// again must return the same host.
func FuzzNewHop(f *testing.F) {
	for _, seed := range []string{
		"https://a.example/x?y#z", "https://A.example.:8443/%2f/ü?q= y", "HTTPS://[::FFFF:1.2.3.4]", "https://a\\@b/", "https://a@b:1@c/", "https://①.example", "https:a", "https://a:443:80/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := newHop(httpRequest{URL: text}, PublicNetwork())
		if err != nil {
			if errcode.CodeOf(err) == errcode.Internal {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := url.Parse(h.url.String())
		if err != nil || again.Scheme != "https" || again.User != nil {
			t.Fatalf("%q became %q, %v", text, h.url, err)
		}
		if host, err := hosts.FromURL(again); err != nil || host != h.host {
			t.Errorf("%q goes to %q, checked was %q, %v", text, host, h.host, err)
		}
		var sent bytes.Buffer
		req, err := http.NewRequest(h.method, h.url.String(), nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := req.Write(&sent); err != nil || strings.Count(sent.String(), " ") < 2 || strings.Count(strings.SplitN(sent.String(), "\r\n", 2)[0], " ") != 2 {
			t.Errorf("%q is sent as %q, %v", text, sent.String(), err)
		}
	})
}

func TestHTTPRequest_SchemaTimeoutMatchesPolicy(t *testing.T) {
	w := newNetworkFixture(t, nil)
	schema := w.fixture["http_request"].Definition().Input
	if want := fmt.Sprintf(`"maximum":%d`, PublicNetwork().Timeout.Milliseconds()); !bytes.Contains(schema, []byte(want)) {
		t.Errorf("the policy's timeout of %v is not the maximum in the schema", PublicNetwork().Timeout)
	}
}
