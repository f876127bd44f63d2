package toolboxfile

import (
	"net/url"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// connectionParams reads the parameters of a connection: a mapping, or a text that has them,
// which a variable may hold. The text is a=b&c=d or {a: b, c: d}.
func connectionParams(to *map[string]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsScalar() {
			yamldoc.TextMap(to)(v)
			return
		}
		text, ok := v.ReadScalar()
		if !ok {
			return
		}
		if *to, ok = splitParams(text); !ok { // without the text, which may have a password
			v.AddTypeError("a mapping of names to texts, or the text of one", "for example {sslmode: require}, or sslmode=require&application_name=x")
		}
	}
}

// splitParams returns the parameters in a text. Each has one value.
func splitParams(text string) (params map[string]string, ok bool) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return params, yaml.Unmarshal([]byte(text), &params) == nil
	}
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, false
	}
	params = map[string]string{}
	for name, values := range query {
		if name == "" || len(values) != 1 || !strings.Contains(text, "=") {
			return nil, false
		}
		params[name] = values[0]
	}
	return params, true
}
