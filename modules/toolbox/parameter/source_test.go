package parameter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

const twoServices = `[{"name":"uid","type":"%s","authServices":[{"name":"my_auth","field":"%s"},{"name":"other-auth","field":"sub"}]}]`

// The first verified service with the claim provides the value.
func TestSet_ParseArgumentsUsesClaims(t *testing.T) {
	for name, c := range map[string]struct {
		kind, field string
		claims      map[string]string
		want        any
	}{
		"the first service":             {"string", "sub", map[string]string{"my_auth": `{"sub":"u1"}`, "other-auth": `{"sub":"u2"}`}, "u1"},
		"the second, alone":             {"string", "sub", map[string]string{"other-auth": `{"sub":"u2"}`}, "u2"},
		"the first lacks the claim":     {"string", "email", map[string]string{"my_auth": `{"sub":"u1"}`, "other-auth": `{"sub":"u2"}`}, "u2"},
		"the first has null":            {"string", "sub", map[string]string{"my_auth": `{"sub":null}`, "other-auth": `{"sub":"u2"}`}, "u2"},
		"the first has two":             {"string", "sub", map[string]string{"my_auth": `{"sub":"a","sub":"b"}`, "other-auth": `{"sub":"u2"}`}, "u2"},
		"a name that looks like a path": {"string", "https://x/a.b#|@", map[string]string{"my_auth": `{"https://x/a":{"b#|@":"no"},"https://x/a.b#|@":"yes"}`}, "yes"},
		"an exact integer":              {"integer", "num", map[string]string{"my_auth": `{"num":9007199254740993}`}, int64(9007199254740993)},
		"an integer with a point":       {"integer", "num", map[string]string{"my_auth": `{"num":42.0}`}, int64(42)},
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, fmt.Sprintf(twoServices, c.kind, c.field), `[]`)
			values, err := set.ParseArguments(json.RawMessage(`{"uid":"spoof"}`), claimsFrom(c.claims), nil)
			if err != nil || values.BindValues()[0] != c.want {
				t.Errorf("got %#v, %v; want %v", values.BindValues(), err, c.want)
			}
		})
	}
}

// A call without a verified claim fails, whatever its arguments are.
func TestSet_ParseArgumentsRequiresVerifiedClaims(t *testing.T) {
	for name, c := range map[string]struct {
		more   string // further fields of the parameter
		claims parameter.Claims
		words  string
	}{
		"no claims at all":   {``, nil, "missing or invalid authentication header"},
		"no token":           {``, claimsFrom(nil), "missing or invalid authentication header"},
		"no such claim":      {``, claimsFrom(map[string]string{"my_auth": `{}`}), "no field named sub in claims"},
		"not an object":      {``, claimsFrom(map[string]string{"my_auth": `"sub"`}), "missing or invalid"},
		"unverified claims":  {``, func(string) (json.RawMessage, bool) { return json.RawMessage(`{"sub":"u1"}`), false }, "missing or invalid"},
		"an optional one":    {`,"required":false`, nil, "missing or invalid"},
		"one with a default": {`,"default":"admin"`, nil, "missing or invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, `[{"name":"uid","type":"string"`+c.more+`,"authServices":[{"name":"my_auth","field":"sub"}]}]`, `[]`)
			_, err := set.ParseArguments(json.RawMessage(`{"uid":"spoof"}`), c.claims, json.RawMessage(`{"uid":"spoof"}`))
			wantError(t, err, errcode.Unauthenticated, `error parsing authenticated parameter "uid": `, c.words)
		})
	}
}

// A claim is checked like an argument. The error does not quote it.
func TestSet_ParseArgumentsChecksClaims(t *testing.T) {
	set := compile(t, `[{"name":"uid","type":"array","items":{"type":"string","excludedValues":["root"]},"authServices":[{"name":"my_auth","field":"groups"}]}]`, `[]`)
	for _, claim := range []string{`"staff"`, `["staff",5]`, `["secretroot"]`} {
		_, err := set.ParseArguments(nil, claimsFrom(map[string]string{"my_auth": `{"groups":` + claim + `}`}), nil)
		wantError(t, err, errcode.InvalidArguments, `unable to parse value for "uid"`)
		if strings.Contains(err.Error(), "staff") || strings.Contains(err.Error(), "secretroot") {
			t.Errorf("the message shows the claim: %v", err)
		}
	}
}

// Secure values are read from the secure arguments only.
func TestSet_ParseArgumentsUsesSecureArguments(t *testing.T) {
	set := compile(t, `[{"type":"string","secure":true},{"type":"string"}]`, `[]`)
	values, err := set.ParseArguments(json.RawMessage(`{"a":"spoof","b":"y"}`), nil, json.RawMessage(`{"a":"x","b":"spoof","c":1}`))
	if diff := cmp.Diff([]any{"x", "y"}, values.BindValues()); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	for secure, words := range map[string]string{``: `"a" is required: it is secure`, `{}`: "secure argument", `{"a":null}`: "is required",
		`{"a":1}`: `unable to parse value for "a"`, `{"a":"x","a":"y"}`: "secure arguments", `["x"]`: "secure arguments are not a JSON object"} {
		_, err := set.ParseArguments(json.RawMessage(`{"a":"x","b":"y"}`), nil, json.RawMessage(secure))
		wantError(t, err, errcode.InvalidArguments, words)
	}
}

// Values that the caller did not write appear in no log and no error.
func TestValues_RedactSecrets(t *testing.T) {
	set := compile(t, `[{"type":"string","secure":true},{"type":"string","valueFromParam":"a"},{"type":"string","authServices":[{"name":"my_auth","field":"sub"}]},{"name":"open","type":"string"}]`,
		`[{"name":"t","type":"string","valueFromParam":"c"}]`)
	claims := claimsFrom(map[string]string{"my_auth": `{"sub":"hidden2"}`})
	values, err := set.ParseArguments(json.RawMessage(`{"open":"shown"}`), claims, json.RawMessage(`{"a":"hidden1"}`))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("call", "values", values, "inside", []any{values})
	slog.New(slog.NewTextHandler(&log, nil)).Info("call", "values", values, "inside", []any{&values})
	text, _ := json.Marshal(map[string]any{"values": values})
	for _, shown := range []string{log.String(), string(text), fmt.Sprint(values), fmt.Sprintf("%+v %#v %s %v", values, values, values, &values)} {
		if strings.Contains(shown, "hidden") || !strings.Contains(shown, "shown") || !strings.Contains(shown, "[redacted]") {
			t.Errorf("got %s", shown)
		}
	}
	if got, want := string(values.JSON()), `{"a":"hidden1","b":"hidden1","c":"hidden2","open":"shown","t":"hidden2"}`; got != want {
		t.Errorf("JSON must not redact: got %s, want %s", got, want)
	}
	limited := compile(t, `[{"type":"map","valueType":"integer","secure":true},{"type":"array","items":{"type":"integer"},"valueFromParam":"z","required":false},{"name":"z","type":"array","items":{"type":"integer"},"secure":true}]`, `[]`)
	for _, secure := range []string{`{"a":"hidden"}`, `{"a":{"hidden":"hidden"}}`, `{"a":{},"z":["hidden"]}`} {
		_, err := limited.ParseArguments(nil, nil, json.RawMessage(secure))
		wantError(t, err, errcode.InvalidArguments, "unable to parse value for")
		if strings.Contains(err.Error(), "hidden") {
			t.Errorf("the message shows the value: %v", err)
		}
	}
}

// ClaimServices, OrdinaryNames, TemplateNames and HasSecure describe what a call needs.
func TestSet_Requirements(t *testing.T) {
	set := compile(t, `[{"type":"string","authServices":[{"name":"other-auth","field":"sub"},{"name":"my_auth","field":"sub"}]},{"type":"string","secure":true}]`, `[{"name":"t","type":"string"}]`)
	if diff := cmp.Diff(map[string][]string{"a": {"other-auth", "my_auth"}}, set.ClaimServices()); diff != "" {
		t.Errorf("services -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"t"}}, [][]string{set.OrdinaryNames(), set.TemplateNames()}); diff != "" {
		t.Errorf("names -want +got:\n%s", diff)
	}
	if !set.HasSecure() || compile(t, `[{"type":"string"}]`, `[]`).HasSecure() {
		t.Error("Secure must be true for the first set only")
	}
}
