package webpage_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// behind returns the server as seen through a proxy until the end of the test. The proxy calls
// answer for each request. A request that answer does not answer itself goes on to the server.
func (s *server) behind(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) (answered bool)) *server {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	next := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if r.In.Header.Get("Origin") != "" { // as if the server had served the page itself
			r.Out.Header.Set("Origin", s.url)
		}
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections) // event streams have no end
	seen := *s
	seen.url = proxy.URL
	return &seen
}
