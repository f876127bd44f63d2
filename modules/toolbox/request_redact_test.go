package toolbox_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox"
)

// The secrets of an echoing service, and the forms in which it sends one back.
const (
	headerSecret = "sk/header+6b1f?0e9d"
	querySecret  = "sk/query+77aa?b8c1"
	toolSecret   = "sk/tool+01d4?93ee"
)

func echoForms(secret string) []string {
	percent := url.QueryEscape(secret)
	return []string{
		secret, percent, strings.ToLower(percent), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte("u:" + secret)), base64.URLEncoding.EncodeToString([]byte("u" + secret)),
	}
}

// echoSecrets answers with the secrets of the request, in the way that its path names.
func echoSecrets(w http.ResponseWriter, r *http.Request) {
	var forms []string
	for _, secret := range []string{r.Header.Get("X-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.URL.Query().Get("key")} {
		forms = append(forms, echoForms(secret)...)
	}
	text := strings.Join(forms, " and ")
	switch r.URL.Path {
	case "/json":
		_ = json.NewEncoder(w).Encode(map[string]any{"text": text, "list": forms, text: 1})
	case "/text":
		fmt.Fprint(w, text)
	case "/bytes":
		fmt.Fprint(w, "\xff"+text)
	case "/error":
		http.Error(w, strings.Repeat("x", 2<<10-10)+text, http.StatusBadRequest)
	case "/errorjson":
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": forms})
	case "/redirect":
		http.Redirect(w, r, "http://127.0.0.1:1/?"+text, http.StatusTemporaryRedirect)
	case "/location":
		w.Header().Set("Location", "http://%zz/"+text)
		w.WriteHeader(http.StatusFound)
	case "/broken":
		c, out, _ := http.NewResponseController(w).Hijack()
		fmt.Fprintf(out, "garbage %s\r\n\r\n", text)
		out.Flush()
		c.Close()
	}
}

func TestRequest_RedactsWhatServiceEchoes(t *testing.T) {
	doc := fmt.Sprintf(`{kind: source, name: api, type: http, baseUrl: %q, headers: {Authorization: "Bearer %s"}, queryParams: {key: %q}}`, serve(t, echoSecrets), headerSecret, querySecret)
	names := []string{"json", "text", "bytes", "error", "errorjson", "redirect", "location", "broken"}
	for _, name := range names {
		doc += fmt.Sprintf("\n---\n{kind: tool, type: http, source: api, name: %[1]s, description: d, method: GET, path: /%[1]s, headers: {X-Key: %[2]q}}", name, toolSecret)
	}
	c := parse(t, doc)
	w := newFixture(t, c)
	w.change = func(c *toolbox.Config) {
		c.Network = func() toolbox.Network {
			return toolbox.Network{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		}
	}
	w.load(c)
	for _, name := range names {
		a := w.call(t.Context(), name, `{}`)
		shown := a.Result.Text + string(a.Result.Structured) + fmt.Sprint(a.Err) + w.log.String()
		if name == "bytes" {
			var doc struct{ Base64 []byte }
			if err := json.Unmarshal(a.Result.Structured, &doc); err != nil {
				t.Error(err)
			}
			shown += string(doc.Base64)
		}
		for _, secret := range []string{headerSecret, querySecret, toolSecret} {
			for _, form := range echoForms(secret) {
				if core := strings.TrimRight(form, "="); strings.Contains(shown, core[4:len(core)-2]) {
					t.Errorf("%s: the secret is shown as %s: %.3000s", name, form, shown)
				}
			}
		}
		if name == "error" && strings.Contains(shown, toolSecret[:9]) {
			t.Errorf("the beginning of the secret is shown: %.3000s", shown)
		}
		switch name {
		case "json", "text", "bytes", "error", "errorjson":
			if !strings.Contains(shown, "***") {
				t.Errorf("%s: nothing was echoed: %.3000s", name, shown)
			}
		}
	}
}
