// Package ui serves the web page of the gateway: HTML, styles and scripts that are part of the
// binary. There is no build step. The page gets all data from the HTTP API, with the rights of
// the user who has signed in.
//
//	mux.Handle("GET /ui/app/", ui.Assets())
//	mux.Handle("GET /{$}", ui.PageOr(index))
//
// The page holds no data and is served to everybody. Its policy allows scripts, styles and
// requests of this origin only, and Trusted Types keep data from becoming markup.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed index.html app vendor
var files embed.FS

// Paths of the assets below the root of the gateway. The page names them relative to itself.
const (
	AppPath    = "/ui/app/"
	VendorPath = "/ui/vendor/"
)

// policy is the Content-Security-Policy of the page.
const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html rolecall-worker"

// asset is a file as it is sent.
type asset struct {
	content, packed []byte // packed is gzip
	kind, tag       string
}

// load returns the assets by their names. It reads and packs them once, when the first one is
// asked for, so that a start costs nothing.
var load = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		all[name] = newAsset(name, content)
		return err
	})
	if err != nil {
		panic("read embedded files: " + err.Error()) // they are in memory
	}
	return all
})

func newAsset(name string, content []byte) asset {
	digest := sha256.Sum256(content)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(content) // a bytes.Buffer returns no error
	_ = z.Close()
	return asset{content: content, packed: packed.Bytes(), kind: mediaType(name), tag: `"` + hex.EncodeToString(digest[:8]) + `"`}
}

// mediaType returns the type of a file. It does not depend on the tables of the system.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// Assets returns the handler of AppPath and VendorPath. It is safe for concurrent use.
func Assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one, ok := load()[strings.TrimPrefix(r.URL.Path, "/ui/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		one.serve(w, r)
	})
}

// PageOr returns a handler that answers browsers with the page and passes requests of programs
// to next. A browser is a sender that prefers text/html.
func PageOr(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if !PrefersPage(r) {
			next.ServeHTTP(w, r)
			return
		}
		load()["index.html"].serve(w, r)
	})
}

// PrefersPage reports whether the Accept header of a request prefers text/html to
// application/json. Without the header it reports false.
func PrefersPage(r *http.Request) bool {
	page, program := 0.0, 0.0
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		weight := 1.0
		if text, ok := params["q"]; ok {
			if weight, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		switch kind {
		case "text/html":
			page = max(page, weight)
		case "application/json":
			program = max(program, weight)
		}
	}
	return page > program
}

// serve answers with an asset, or with 304 if the browser has it.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	h.Set("ETag", a.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.kind)
	content := a.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = a.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the browser has gone
	}
}
