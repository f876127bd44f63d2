package ui_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/ui"
)

// get asks the page and its assets.
func get(t *testing.T, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET "+ui.AppPath, ui.Assets())
	mux.Handle("GET "+ui.VendorPath, ui.Assets())
	mux.Handle("GET /{$}", ui.PageOr(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "index") })))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header = header
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func TestPageOr_AnswersBrowsersAndPrograms(t *testing.T) {
	for accept, page := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html;q=0.5, application/json": false, "text/html;q=x": false, "text/html, application/json": false,
		"text/html": true, "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8": true, "application/json;q=0.1, text/html;q=0.2": true, ";;, text/html": true,
	} {
		w := get(t, "/", http.Header{"Accept": {accept}})
		if got := strings.HasPrefix(w.Body.String(), "<!doctype html>"); got != page {
			t.Errorf("Accept %q: page %t, want %t", accept, got, page)
		}
		if w.Header().Get("Vary") == "" {
			t.Errorf("Accept %q: no Vary", accept)
		}
	}
}

func TestAssets_HaveStrictPolicy(t *testing.T) {
	for _, path := range []string{"/", "/ui/app/main.js", "/ui/app/style.css", "/ui/vendor/lit-html/lit-html.js"} {
		w := get(t, path, http.Header{"Accept": {"text/html"}})
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
			t.Errorf("%s: %d, policy %q", path, w.Code, policy)
		}
		if w.Header().Get("X-Frame-Options") != "DENY" || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, w.Header())
		}
	}
}

func TestAssets_AreRevalidatedAndPacked(t *testing.T) {
	first := get(t, "/ui/app/main.js", http.Header{"Accept-Encoding": {"gzip, br"}})
	z, err := gzip.NewReader(first.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	plain := get(t, "/ui/app/main.js", nil)
	if err != nil || string(text) != plain.Body.String() || first.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("packed %d bytes, plain %d, %v, %v", len(text), plain.Body.Len(), err, first.Header())
	}
	again := get(t, "/ui/app/main.js", http.Header{"If-None-Match": {first.Header().Get("ETag")}})
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("the same asset: %d with %d bytes", again.Code, again.Body.Len())
	}
}

func TestAssets_ServesOnlyItsFiles(t *testing.T) {
	for _, path := range []string{"/ui/app/", "/ui/app/nothing.js", "/ui/app/..%2f..%2fui.go", "/ui/vendor/", "/ui/app/%00"} {
		if w := get(t, path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// The size of all assets as they are sent bounds the first visit over a slow network.
func TestAssets_AreSmall(t *testing.T) {
	total := 0
	for _, name := range assetNames(t) {
		w := get(t, "/ui/"+name, http.Header{"Accept-Encoding": {"gzip"}})
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", name, w.Code)
		}
		total += w.Body.Len()
	}
	if total > 250<<10 {
		t.Errorf("the assets have %d bytes, want at most %d", total, 250<<10)
	}
}

// assetNames returns the names of the files below app and vendor.
func assetNames(t *testing.T) (names []string) {
	t.Helper()
	for _, dir := range []string{"app", "vendor"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				names = append(names, filepath.ToSlash(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// The files of others are those that they have published.
func TestVendor_FilesAreUnmodified(t *testing.T) {
	text, err := os.ReadFile("vendor/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var packages []struct {
		Name, Version, Licence string
		Files                  map[string]string
	}
	if err := json.Unmarshal(text, &packages); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"vendor/vendor.json": true}
	for _, p := range packages {
		if p.Version == "" || p.Licence == "" || p.Files[p.Name+"/LICENSE"] == "" {
			t.Errorf("%s: version %q, licence %q, without its text", p.Name, p.Version, p.Licence)
		}
		for name, want := range p.Files {
			content, err := os.ReadFile(filepath.Join("vendor", filepath.FromSlash(name)))
			digest := sha256.Sum256(content)
			if got := hex.EncodeToString(digest[:]); err != nil || got != want {
				t.Errorf("%s: SHA-256 %s, want %s, %v", name, got, want, err)
			}
			listed["vendor/"+name] = true
		}
	}
	for _, name := range assetNames(t) {
		if strings.HasPrefix(name, "vendor/") && !listed[name] {
			t.Errorf("%s is not listed in vendor.json", name)
		}
	}
}

// absolute matches addresses that would leave the origin, or the path prefix of a proxy. unsafe
// matches what turns text into markup or code.
var (
	absolute = regexp.MustCompile("(?:from|import|fetch|get|send|list|href=|src=)[ (]*[\"'`](?:https?:|/)")
	unsafe   = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|unsafeHTML|document\.write|\beval\(|new Function|style="`)
)

func TestApp_HasRelativeAddressesAndNoMarkupFromData(t *testing.T) {
	for _, name := range append(assetNames(t), "index.html") {
		if strings.HasPrefix(name, "vendor/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := absolute.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		if found := unsafe.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}
