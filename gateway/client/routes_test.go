package client_test

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
)

// withoutMethod are the routes for which the client has no method, and why.
var withoutMethod = map[string]string{
	"GET /":                 "for people who look around",
	"GET /api/openapi.json": "for programs that make clients",
	"GET /metrics":          "for Prometheus",
	"POST /hooks/{name}":    "for programs that carry the secret of a trigger",

	"POST /api/v1/flow/{flow}/service/agent": "for TrustGraph's client",
}

// otherProtocols are the beginnings of paths whose routes have clients of their own, such as browsers. ServeMCP is
// tested with the connections that it upgrades.
var otherProtocols = []string{"/ui/", "/api/tool", "/roles/", "/mcp", "/v1/", "/access/", "/.well-known/"}

// Every route has a method of the client, or is listed as one without.
func TestClient_HasEachRoute(t *testing.T) {
	want := map[string]bool{}
	routes := http.NewServeMux()
	var mu sync.Mutex
	called := map[string]bool{}
	gjson.GetBytes(gateway.OpenAPIDocument(), "paths").ForEach(func(path, methods gjson.Result) bool {
		if slices.ContainsFunc(otherProtocols, func(p string) bool { return strings.HasPrefix(path.Str, p) }) {
			return true
		}
		methods.ForEach(func(method, _ gjson.Result) bool {
			name := strings.ToUpper(method.Str) + " " + path.Str
			want[name] = true
			pattern := name
			if path.Str == "/" {
				pattern += "{$}"
			}
			routes.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				called[name] = true
				wire.WriteError(w, errcode.New(errcode.Conflict, "only counted"))
			})
			return true
		})
		return true
	})
	callAll(t, client.NewLocal(routes))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, listed := withoutMethod[name]; called[name] == listed {
			t.Errorf("%s: called by a method: %v, listed as one without: %v", name, called[name], listed)
		}
	}
}

// callAll calls each method of a client that takes a context first. Errors of the gateway are
// typed.
func callAll(t *testing.T, c *client.Client) {
	t.Helper()
	v := reflect.ValueOf(c)
	for i := range v.NumMethod() {
		method := v.Method(i)
		name, kind := v.Type().Method(i).Name, method.Type()
		if kind.NumIn() == 0 || kind.In(0) != reflect.TypeFor[context.Context]() || name == "ServeMCP" {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for p := 1; p < kind.NumIn(); p++ {
			arg := reflect.New(kind.In(p)).Elem()
			if arg.Kind() == reflect.String {
				arg.SetString("x")
			}
			if arg.Kind() == reflect.Int {
				arg.SetInt(1)
			}
			args = append(args, arg)
		}
		out := method.Call(args)
		last := out[len(out)-1]
		if last.Kind() == reflect.Func {
			last = lastOf(last.Seq2())
		}
		if err, _ := last.Interface().(error); errcode.CodeOf(err) != errcode.Conflict {
			t.Errorf("%s: got the error %v, want that of the gateway", name, err)
		}
	}
}

// lastOf returns the second part of a sequence's last item.
func lastOf(seq iter.Seq2[reflect.Value, reflect.Value]) (last reflect.Value) {
	for _, last = range seq {
	}
	return last
}
