package mcpclient_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// secretName is the variable with the secret of the server, secret its value.
const (
	secretName = "TEST_SECRET"
	secret     = "sk/canary+6b1f?0e9d"
)

// echoed returns a text with a secret in every form that is redacted.
func echoed(secret string) string {
	percent := url.QueryEscape(secret)
	return strings.Join([]string{
		secret, percent, strings.ToLower(percent), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte("u:" + secret)), base64.URLEncoding.EncodeToString([]byte("u" + secret)),
	}, " and ")
}

// echoedJSON is echoed as a JSON string, of the secret that this server was given.
func echoedJSON() string { return jsonString(echoed(os.Getenv(secretName))) }

func jsonString(text string) string {
	doc, _ := json.Marshal(text) // a string always marshals
	return string(doc)
}

// wantNoSecret checks that a text has no form of the secret.
func wantNoSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range strings.Split(echoed(secret), " and ") {
		if core := strings.TrimRight(form, "="); strings.Contains(text, core[4:len(core)-2]) {
			t.Errorf("%s contains the secret as %s: %.2000s", where, form, text)
		}
	}
}

// useEchoing loads a server that echoes its secret, calls its tool and checks that the
// secret is in no result, error, definition, record or log.
func useEchoing(t *testing.T, c mcpclient.Config, silent bool) {
	fx := newFixture(t)
	var log buffer.SyncBuffer
	c.Host.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	m := fx.newModule(c)
	shown := fmt.Sprint(fx.loader.LoadModule(t.Context(), m))
	if h, ok := fx.manager.CurrentSnapshot().LookupTool(*c.Prefix + "act"); ok {
		r, err := h.Tool.Call(t.Context(), tool.Call{Name: "act", Args: json.RawMessage(`{}`)})
		shown += fmt.Sprintf(" %+v %s %v", h.Definition, h.Definition.Input, err) + r.Text + string(r.Structured)
	}
	fx.store.mu.Lock()
	for _, record := range fx.store.records {
		shown += string(record)
	}
	fx.store.mu.Unlock()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wantNoSecret(t, "the result", shown)
	wantNoSecret(t, "the log", log.String())
	if !silent && !strings.Contains(shown, "***") {
		t.Errorf("nothing was echoed: %s", shown)
	}
}

func TestModule_RedactsWhatProgramEchoes(t *testing.T) {
	for _, mode := range []string{"result", "an error", "a line", "a definition", "to stderr", "at start"} {
		t.Run(mode, func(t *testing.T) {
			mode = strings.Replace("echoes "+mode, "result", "a result", 1)
			fx := newFixture(t)
			c := fx.childConfig("raw", mode)
			c.Command.Env = append(c.Command.Env, secretName+"="+secret)
			c.Prefix = new(string)
			useEchoing(t, c, false)
		})
	}
}

func TestModule_RedactsWhatServerEchoes(t *testing.T) {
	type answer = func(w http.ResponseWriter, r *http.Request, key string)
	reply := func(form string) answer {
		return func(w http.ResponseWriter, r *http.Request, key string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,`+form+`}`, idOf(r), jsonString(echoed(key)))
		}
	}
	for name, c := range map[string]struct {
		method string
		answer answer
		silent bool // nothing of the answer is shown
	}{
		"result": {"tools/call", reply(`"result":{"content":[{"type":"text","text":%s}]}`), false},
		"error":  {"tools/call", reply(`"error":{"code":-32602,"message":%s}`), false},
		"bad request": {"tools/call", func(w http.ResponseWriter, r *http.Request, key string) {
			w.WriteHeader(http.StatusBadRequest)
			reply(`"error":{"code":-32602,"message":%s}`)(w, r, key)
		}, false},
		"definition": {"tools/list", reply(`"result":{"tools":[{"name":"act","description":%s,"inputSchema":{"type":"object"}}]}`), false},
		"start":      {"initialize", reply(`"error":{"code":-32602,"message":%s}`), false},
		"stream": {"tools/call", func(w http.ResponseWriter, r *http.Request, key string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": %s\r\nevent: message\ndata:{\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":%s}]}}\n\n", echoed(key), idOf(r), jsonString(echoed(key)))
		}, false},
		"redirect": {"tools/call", func(w http.ResponseWriter, r *http.Request, key string) {
			http.Redirect(w, r, "http://127.0.0.1:1/?key="+url.QueryEscape(echoed(key)), http.StatusTemporaryRedirect)
		}, false},
		"relative redirect": {"tools/call", func(w http.ResponseWriter, r *http.Request, key string) {
			w.Header().Set("Location", "http://%zz/"+key)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, false},
		"not JSON": {"tools/call", func(w http.ResponseWriter, _ *http.Request, key string) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, echoed(key))
		}, true},
		"content type": {"tools/call", func(w http.ResponseWriter, _ *http.Request, key string) {
			w.Header().Set("Content-Type", echoed(key))
			fmt.Fprint(w, "{}")
		}, true},
		"plain error": {"tools/call", func(w http.ResponseWriter, _ *http.Request, key string) {
			http.Error(w, echoed(key), http.StatusInternalServerError)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := newRawServer(t, func(w http.ResponseWriter, r *http.Request, method string) {
				if method == c.method {
					_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
					c.answer(w, r, key)
				}
			})
			useEchoing(t, mcpclient.Config{Name: "raw", URL: at, Prefix: new(string), Headers: map[string]string{"Authorization": "Bearer " + secret}}, c.silent)
		})
	}
}
