package chrome_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/org/hosts"
)

// allowOnly returns a policy that allows one address of loopback.
func allowOnly(addr string) chrome.Policy {
	p := loopback()
	p.Private = []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr(addr), 32)}
	return p
}

// hiddenServer listens on another address of loopback, over TCP and UDP, and counts
// connections and packets.
type hiddenServer struct {
	addr string
	tcp  atomic.Int64
	udp  atomic.Int64
}

// newHiddenServer starts a hiddenServer on 127.0.0.2.
func newHiddenServer(t *testing.T) *hiddenServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &hiddenServer{addr: l.Addr().String()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write([]byte("secret"))
	}), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.tcp.Add(1)
		}
	}}
	ended := make(chan struct{}, 2)
	go func() { _ = server.Serve(l); ended <- struct{}{} }()
	go func() {
		defer func() { ended <- struct{}{} }()
		for buf := make([]byte, 2000); ; s.udp.Add(1) {
			if _, _, err := u.ReadFrom(buf); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { server.Close(); u.Close(); <-ended; <-ended })
	return s
}

// attacks are scripts by which a page may try to reach HOST. Each calls done when its attempt
// has ended.
var attacks = map[string]string{
	"fetch":          `fetch('http://HOST/').then(r => r.text()).then(done, done)`,
	"blind fetch":    `fetch('http://HOST/', {mode: 'no-cors', method: 'POST', body: 'a'}).then(done, done)`,
	"request":        `const x = new XMLHttpRequest(); x.onloadend = done; x.open('GET', 'http://HOST/'); x.send()`,
	"image":          `const i = new Image(); i.onload = i.onerror = done; i.src = 'http://HOST/'`,
	"script":         `const s = document.createElement('script'); s.onload = s.onerror = done; s.src = 'http://HOST/'; document.head.append(s)`,
	"style":          `const s = document.createElement('link'); s.rel = 'stylesheet'; s.onload = s.onerror = done; s.href = 'http://HOST/'; document.head.append(s)`,
	"frame":          `const f = document.createElement('iframe'); f.onload = f.onerror = done; f.src = 'http://HOST/'; document.body.append(f)`,
	"frame of TLS":   `const f = document.createElement('iframe'); f.onload = f.onerror = done; f.src = 'https://HOST/'; document.body.append(f)`,
	"redirect":       `fetch('/to?http://HOST/').then(done, done)`,
	"redirect frame": `const f = document.createElement('iframe'); f.onload = f.onerror = done; f.src = '/to?http://HOST/'; document.body.append(f)`,
	"web socket":     `const s = new WebSocket('ws://HOST/'); s.onopen = s.onerror = done`,
	"TLS web socket": `const s = new WebSocket('wss://HOST/'); s.onopen = s.onerror = done`,
	"events":         `const e = new EventSource('http://HOST/'); e.onopen = e.onerror = done`,
	"worker":         `const w = new Worker('/worker.js?http://HOST/'); w.onmessage = w.onerror = done`,
	"shared worker":  `const w = new SharedWorker('/shared.js?http://HOST/'); w.port.onmessage = w.onerror = done`,
	"service worker": `navigator.serviceWorker.onmessage = done; navigator.serviceWorker.register('/service.js?http://HOST/').catch(done)`,
	"blob worker":    `const w = new Worker(URL.createObjectURL(new Blob(["fetch('http://HOST/').then(r => postMessage(1), r => postMessage(2))"]))); w.onmessage = w.onerror = done`,
	"beacon":         `navigator.sendBeacon('http://HOST/', 'a'); fetch('http://HOST/keep', {keepalive: true, mode: 'no-cors'}).then(done, done)`,
	"font":           `new FontFace('f', 'url(http://HOST/)').load().then(done, done)`,
	"video":          `const v = document.createElement('video'); v.onerror = v.onloadeddata = done; v.src = 'http://HOST/'`,
	"module":         `import('http://HOST/').then(done, done)`,
	"window":         `window.open('http://HOST/'); done()`,
	"preload":        `const l = document.createElement('link'); l.rel = 'preload'; l.as = 'fetch'; l.onload = l.onerror = done; l.href = 'http://HOST/'; document.head.append(l)`,
	"hints":          `for (const rel of ['dns-prefetch', 'preconnect', 'prefetch']) { const l = document.createElement('link'); l.rel = rel; l.href = 'http://HOST/'; document.head.append(l) } fetch('http://HOST/').then(done, done)`,
	"peer":           `const c = new RTCPeerConnection({iceServers: [{urls: ['stun:HOST', 'turn:HOST?transport=udp', 'turn:HOST?transport=tcp'], username: 'a', credential: 'b'}]}); c.createDataChannel('a'); c.onicegatheringstatechange = () => c.iceGatheringState === 'complete' && done(); c.createOffer().then(o => c.setLocalDescription(o)).catch(done)`,
	"transport":      `(async () => { const w = new WebTransport('https://HOST/'); await w.ready })().then(done, done)`,
	"rules":          `const s = document.createElement('script'); s.type = 'speculationrules'; s.text = JSON.stringify({prefetch: [{urls: ['http://HOST/']}], prerender: [{urls: ['http://HOST/']}]}); document.head.append(s); fetch('http://HOST/').then(done, done)`,
	"form":           `const f = document.createElement('iframe'); f.name = 'f'; document.body.append(f); const m = document.createElement('form'); m.target = 'f'; m.method = 'post'; m.action = 'http://HOST/'; document.body.append(m); f.onload = done; m.submit()`,
}

// serveAttacks serves a page for attacks, and the scripts and redirects that they use.
func serveAttacks(t *testing.T) *site {
	return serveSite(t, map[string]string{"/": "<body>page"}, func(w http.ResponseWriter, r *http.Request) {
		target, _ := url.QueryUnescape(r.URL.RawQuery)
		w.Header().Set("Content-Type", "text/javascript")
		switch r.URL.Path {
		case "/to":
			http.Redirect(w, r, target, http.StatusFound)
		case "/worker.js":
			fmt.Fprintf(w, `fetch(%q).then(() => postMessage(1), () => postMessage(2))`, target)
		case "/shared.js":
			fmt.Fprintf(w, `onconnect = e => fetch(%q).then(() => e.ports[0].postMessage(1), () => e.ports[0].postMessage(2))`, target)
		case "/service.js":
			fmt.Fprintf(w, `oninstall = e => skipWaiting(); onactivate = e => e.waitUntil((async () => { await clients.claim();
				try { await fetch(%q) } catch {} for (const c of await clients.matchAll({includeUncontrolled: true})) c.postMessage(1) })())`, target)
		}
	})
}

// runAttacks runs all attacks in one page, each on its own hiddenServer, and waits for them.
func runAttacks(t *testing.T, a agent) map[string]*hiddenServer {
	t.Helper()
	s, hidden := serveAttacks(t), map[string]*hiddenServer{}
	var code strings.Builder
	for name, script := range attacks {
		hidden[name] = newHiddenServer(t)
		fmt.Fprintf(&code, "new Promise(done => { setTimeout(done, 6000); %s }),\n", strings.ReplaceAll(script, "HOST", hidden[name].addr))
	}
	if went := a.mustCall("chrome_navigate", obj{"url": s.URL + "/"}); went.Title != "/" {
		t.Fatalf("the page is %+v", went)
	}
	a.mustCall("chrome_evaluate", obj{"timeoutMs": 20000, "expression": "Promise.all([" + code.String() + "]).then(() => 1)"})
	return hidden
}

// No attack of a page reaches an address that the policy does not allow, in the sandbox and
// outside.
func TestProxy_BlocksPrivateAddresses(t *testing.T) {
	for _, fx := range []*fixture{sharedFixture(t), newOwnFixture(t, `{"noSandbox": true}`)} {
		fx.setPolicy(allowOnly("127.0.0.1"), nil)
		for name, hidden := range runAttacks(t, fx.agent(t)) {
			if hidden.tcp.Load() != 0 || hidden.udp.Load() != 0 {
				t.Errorf("%s: %d connections and %d packets arrived", name, hidden.tcp.Load(), hidden.udp.Load())
			}
		}
	}
}

// The attacks reach addresses that the policy allows, which proves that they work. None
// bypasses the proxy. This is outside the sandbox, in which there is no network to bypass it by.
func TestProxy_AllowsConfiguredAddresses(t *testing.T) {
	fx := newOwnFixture(t, `{"noSandbox": true}`)
	for name, hidden := range runAttacks(t, fx.agent(t)) {
		blocked := name == "window" || name == "transport" // needs a click; is not supported by proxies
		if got := hidden.tcp.Load(); (got == 0) != blocked {
			t.Errorf("%s: %d connections arrived", name, got)
		}
		if hidden.udp.Load() != 0 {
			t.Errorf("%s: %d packets bypassed the proxy", name, hidden.udp.Load())
		}
	}
}

// closedPort returns a port on which nothing listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestNavigate_RejectsDisallowedURLs(t *testing.T) {
	fx := sharedFixture(t)
	fx.setPolicy(allowOnly("127.0.0.1"), func(_ identity.Principal, h hosts.Host) bool { return strings.HasPrefix(h.Name, "denied") })
	a, hidden := fx.agent(t), newHiddenServer(t)
	s := serveAttacks(t)
	for address, code := range map[string]errcode.Code{
		"http://" + hidden.addr + "/":                errcode.AddressBlocked,
		"https://" + hidden.addr + "/":               errcode.AddressBlocked,
		s.URL + "/to?http://" + hidden.addr + "/":    errcode.AddressBlocked,
		s.URL + "/to?https://" + hidden.addr + "/":   errcode.AddressBlocked,
		s.URL + "/to?https://denied.example/":        errcode.HostBlocked,
		"https://denied.example/":                    errcode.HostBlocked,
		"http://127.0.0.1:" + closedPort(t) + "/":    errcode.ToolExecutionFailed,
		"http://localhost:1/":                        errcode.InvalidURL,
		"http://127.0.0.1:22/":                       errcode.InvalidURL,
		"http://2130706434/":                         errcode.InvalidURL,
		"http://0x7f.2/":                             errcode.InvalidURL,
		"http://user@127.0.0.1/":                     errcode.InvalidURL,
		"http:127.0.0.1":                             errcode.InvalidURL,
		"file:///etc/passwd":                         errcode.InvalidURL,
		"FILE:///etc/passwd":                         errcode.InvalidURL,
		"chrome://version":                           errcode.InvalidURL,
		"chrome-untrusted://terminal":                errcode.InvalidURL,
		"devtools://devtools/bundled/inspector.html": errcode.InvalidURL,
		"view-source:http://127.0.0.1/":              errcode.InvalidURL,
		"javascript:alert(1)":                        errcode.InvalidURL,
		" javascript:alert(1)":                       errcode.InvalidURL,
		"java\tscript:alert(1)":                      errcode.InvalidURL,
		"blob:http://127.0.0.1/a":                    errcode.InvalidURL,
		"about:version":                              errcode.InvalidURL,
		"filesystem:http://127.0.0.1/temporary/a":    errcode.InvalidURL,
		"ftp://127.0.0.1/":                           errcode.InvalidURL,
		"ws://127.0.0.1/":                            errcode.InvalidURL,
		"//127.0.0.1/":                               errcode.InvalidURL,
		"127.0.0.1":                                  errcode.InvalidURL,
	} {
		a.wantError(code, "", "chrome_navigate", obj{"url": address})
	}
	if hidden.tcp.Load() != 0 {
		t.Errorf("%d connections arrived", hidden.tcp.Load())
	}
}

func TestBrowser_OpensNoLocalFiles(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{"/": `<iframe src="file:///etc/passwd"></iframe><a href="file:///etc/passwd">file</a><a href="chrome://version">inside</a>`}, nil)
	for _, link := range []string{"file", "inside"} {
		a.mustCall("chrome_navigate", obj{"url": s.URL})
		if got := a.mustCall("chrome_click", obj{"text": link}); got.URL != s.URL+"/" {
			t.Errorf("the link %s opened %s", link, got.URL)
		}
	}
	a.wantValue(`fetch('file:///etc/passwd').then(() => 'read', () => 'refused')`, `"refused"`)
	a.mustCall("chrome_navigate", obj{"url": `data:text/html,<iframe src="file:///etc/passwd"></iframe>`})
	a.wantValue(`fetch('file:///etc/passwd').then(() => 'read', () => 'refused')`, `"refused"`)
}

// Without AllowHTTP pages can send nothing but TLS.
func TestProxy_RequiresTLSByDefault(t *testing.T) {
	fx := sharedFixture(t)
	p := loopback()
	p.AllowHTTP = false
	fx.setPolicy(p, nil)
	a, hidden := fx.agent(t), newHiddenServer(t)
	a.wantError(errcode.OnlyHTTPS, "allowHTTP", "chrome_navigate", obj{"url": "http://" + hidden.addr})
	a.mustCall("chrome_navigate", obj{"url": "data:text/html,<p>a"})
	a.wantValue(strings.ReplaceAll(`fetch('http://HOST/').then(() => 'read', () => 'refused')`, "HOST", hidden.addr), `"refused"`)
	a.wantValue(strings.ReplaceAll(`new Promise(r => { const s = new WebSocket('ws://HOST/'); s.onopen = () => r('open'); s.onerror = () => r('refused') })`, "HOST", hidden.addr), `"refused"`)
	list := a.mustCall("chrome_navigate", obj{"url": "about:blank"}).Unreachable
	if list != nil {
		t.Errorf("a call reports blocked hosts of an earlier one: %v", list)
	}
}

// Hosts are checked for the calling principal, also after a permission was revoked.
func TestProxy_ChecksHostsPerPrincipal(t *testing.T) {
	fx := sharedFixture(t)
	ann, bob := fx.agent(t), fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<body>page"}, nil)
	fx.setPolicy(loopback(), func(by identity.Principal, _ hosts.Host) bool { return by == bob.Principal })
	ann.mustCall("chrome_navigate", obj{"url": s.URL})
	bob.wantError(errcode.HostBlocked, "may not reach", "chrome_navigate", obj{"url": s.URL})
	before := s.connections.Load()
	bob.mustCall("chrome_navigate", obj{"url": `data:text/html,<img src="` + s.URL + `/i"><p>a`})
	bob.wantValue(`fetch('`+s.URL+`', {mode: 'no-cors'}).then(() => 'sent', () => 'refused')`, `"sent"`) // the answer is the proxy's and has no origin
	if got := s.connections.Load(); got != before {
		t.Errorf("%d connections of bob arrived", got-before)
	}
	fx.setPolicy(loopback(), func(by identity.Principal, _ hosts.Host) bool { return by == ann.Principal })
	ann.wantValue(`fetch('/again').then(r => r.status)`, "403")
	bob.mustCall("chrome_navigate", obj{"url": s.URL})
}

// A page that sends on a connection is checked again too, also if the server never answers.
func TestProxy_EndsOpenConnectionsOfDeniedHost(t *testing.T) {
	fx := sharedFixture(t)
	a := fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<body>page"}, acceptWebSocket)
	fx.setPolicy(loopback(), nil)
	a.mustCall("chrome_navigate", obj{"url": s.URL})
	a.wantValue(`new Promise(r => { s = new WebSocket('ws:' + location.host + '/socket'); s.onopen = () => r('open'); s.onerror = () => r('refused') })`, `"open"`)
	fx.setPolicy(loopback(), func(identity.Principal, hosts.Host) bool { return true })
	a.wantValue(`new Promise(r => { s.onclose = () => r('closed'); setInterval(() => s.send('x'), 20) })`, `"closed"`)
}

// acceptWebSocket accepts a web socket, and reads from it without an answer.
func acceptWebSocket(w http.ResponseWriter, r *http.Request) {
	key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(key[:]))
	_, _ = io.Copy(io.Discard, conn)
}

func TestProxy_AppliesOperatorRule(t *testing.T) {
	fx := sharedFixture(t)
	p := loopback()
	p.Hosts = hosts.HostRule{}
	fx.setPolicy(p, nil)
	a := fx.agent(t)
	a.wantError(errcode.HostBlocked, "the operator allows no requests", "chrome_navigate", obj{"url": "http://127.0.0.1:8080/"})
}

// The address that a name resolves to is checked when the proxy dials (DNS rebinding).
func TestProxy_ChecksResolvedAddresses(t *testing.T) {
	hidden := newHiddenServer(t)
	var asked atomic.Int64
	resolver := newResolver(t, func(string) [4]byte {
		if asked.Add(1) == 1 {
			return [4]byte{127, 0, 0, 1}
		}
		return [4]byte{127, 0, 0, 2}
	})
	fx := newFixture(t, `{}`, resolver)
	t.Cleanup(func() { fx.close(t) })
	fx.setPolicy(allowOnly("127.0.0.1"), nil)
	a := fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<body>page"}, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	a.mustCall("chrome_navigate", obj{"url": "http://rebound.test:" + port + "/"})
	_, port, _ = strings.Cut(hidden.addr, ":")
	a.wantValue(`fetch('/').then(r => r.status)`, "403")
	a.wantError(errcode.AddressBlocked, "not public", "chrome_navigate", obj{"url": "http://rebound.test:" + port + "/"})
	if hidden.tcp.Load() != 0 {
		t.Errorf("%d connections arrived", hidden.tcp.Load())
	}
}

// newResolver returns a resolver that resolves each name by at.
func newResolver(t *testing.T, at func(name string) [4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for buf := make([]byte, 2000); ; {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: at(q.Name.String())}}}
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { server.Close(); <-ended })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}
