package modules_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
)

// newPlainModule is a modules.Constructor.
func newPlainModule(c modules.Config) (modules.Module, error) { return plainModule{c.Name}, nil }

func TestRegistry_ListsAndMakesKinds(t *testing.T) {
	var r modules.KindRegistry
	if got := r.ListKinds(); len(got) != 0 {
		t.Errorf("the zero Registry has %v", got)
	}
	for _, kind := range []string{"mcp", "chrome", "toolbox"} {
		if err := r.RegisterKind(modules.ModuleKind{Name: kind, New: newPlainModule}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := r.ListKinds(), []string{"chrome", "mcp", "toolbox"}; !slices.Equal(got, want) {
		t.Errorf("kinds %v, want %v", got, want)
	}
	for _, tt := range []struct{ name, want string }{{"", "mcp"}, {"wiki", "wiki"}} {
		m, err := r.NewModule("mcp", modules.Config{Name: tt.name})
		if err != nil || m.Name() != tt.want {
			t.Errorf("module named %q: %v, %v, want the name %q", tt.name, m, err, tt.want)
		}
	}
}

func TestRegistry_RejectsInvalidKind(t *testing.T) {
	tests := []struct {
		why, kind string
		fn        modules.Constructor
		want      errcode.Code
	}{
		{"no name", "", newPlainModule, errcode.InvalidConfig},
		{"name with spaces", "m c p", newPlainModule, errcode.InvalidConfig},
		{"no constructor", "toolbox", nil, errcode.InvalidConfig},
		{"registered already", "mcp", newPlainModule, errcode.Conflict},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			var r modules.KindRegistry
			if err := r.RegisterKind(modules.ModuleKind{Name: "mcp", New: newPlainModule}); err != nil {
				t.Fatal(err)
			}
			if got := errcode.CodeOf(r.RegisterKind(modules.ModuleKind{Name: tt.kind, New: tt.fn})); got != tt.want {
				t.Errorf("code %q, want %q", got, tt.want)
			}
			if got := r.ListKinds(); len(got) != 1 {
				t.Errorf("kinds are %v", got)
			}
		})
	}
}

func TestRegistry_RejectsInvalidModule(t *testing.T) {
	tests := []struct {
		why, kind, name string
		fn              modules.Constructor
		want            string // in the error's text
	}{
		{"unknown kind", "mpc", "", newPlainModule, `unknown kind "mpc"; registered are: mcp`},
		{"reserved name", "mcp", "operator", newPlainModule, `"operator" is reserved`},
		{"other name than configured", "mcp", "wiki", func(modules.Config) (modules.Module, error) { return plainModule{"root"}, nil }, `has the name "root"`},
		{"constructor returns nil", "mcp", "", func(modules.Config) (modules.Module, error) { return nil, nil }, "returned no module"},
		{"constructor fails", "mcp", "", func(modules.Config) (modules.Module, error) { return nil, errors.New("no luck") }, "no luck"},
		{"constructor panics", "mcp", "", func(modules.Config) (modules.Module, error) { panic("boom") }, "panicked: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			var r modules.KindRegistry
			if err := r.RegisterKind(modules.ModuleKind{Name: "mcp", New: tt.fn}); err != nil {
				t.Fatal(err)
			}
			m, err := r.NewModule(tt.kind, modules.Config{Name: tt.name})
			if m != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("module %v, error %v; want %q in it", m, err, tt.want)
			}
		})
	}
}

// A setting of the wrong type is named, with the type that it must have, in the words of a
// configuration.
func TestConfig_NamesWrongSettings(t *testing.T) {
	type inner struct {
		Port uint16 `json:"port"`
	}
	type settings struct {
		Greeting string            `json:"greeting"`
		Loud     bool              `json:"loud"`
		Times    int               `json:"times"`
		Rate     float64           `json:"rate"`
		Names    []string          `json:"names"`
		Labels   map[string]string `json:"labels"`
		Server   inner             `json:"server"`
	}
	for text, want := range map[string]string{
		`{"greeting": 5}`:         `greeting must be a text, not a number`,
		`{"loud": "yes"}`:         `loud must be true or false, not a text`,
		`{"times": 1.5}`:          `times must be a whole number, not the number 1.5`,
		`{"rate": [1]}`:           `rate must be a number, not a list`,
		`{"names": "Ada"}`:        `names must be a list, not a text`,
		`{"labels": true}`:        `labels must be a mapping, not true or false`,
		`{"server": {"port":-1}}`: `server.port must be a whole number of at least 0, not the number -1`,
		`{"greeting": {"a": 1}}`:  `greeting must be a text, not a mapping`,
		`[]`:                      `they must be a mapping, not a list`,
		`{"greting": ""}`:         `unknown field "greting"`,
	} {
		err := modules.Config{Name: "m", Settings: json.RawMessage(text)}.DecodeSettings(new(settings))
		if want := `invalid_config: settings of module "m": ` + want; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestConfig_DecodesOverDefaults(t *testing.T) {
	tests := []struct {
		settings string
		want     int
		code     errcode.Code
	}{
		{``, 7, ""},
		{`{}`, 7, ""},
		{`{"port": 8}`, 8, ""},
		{`{"prot": 8}`, 7, errcode.InvalidConfig},
		{`{"port": "8"}`, 7, errcode.InvalidConfig},
		{`{"port": 8} {"port": 9}`, 8, errcode.InvalidConfig},
		{`{"port": 8`, 7, errcode.InvalidConfig},
	}
	for _, tt := range tests {
		t.Run(tt.settings, func(t *testing.T) {
			into := struct {
				Port int `json:"port"`
			}{7}
			err := modules.Config{Name: "m", Settings: json.RawMessage(tt.settings)}.DecodeSettings(&into)
			if errcode.CodeOf(err) != tt.code || into.Port != tt.want && tt.code == "" {
				t.Errorf("port %d, error %v; want %d, code %q", into.Port, err, tt.want, tt.code)
			}
		})
	}
}
