package toolboxfile_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/configtest"
)

// A field without a value counts as absent where Toolbox does so, unless that
// would grant something.
func TestReader_NullFieldIsAbsent(t *testing.T) {
	for name, text := range map[string]string{
		"a group":       configtest.DeclaredTool + "---\nkind: group\nname: g\ntools:\n",
		"a toolset":     configtest.DeclaredTool + "---\nkind: toolset\nname: g\ntools:\n",
		"v1 toolsets":   configtest.DeclaredTool + "---\ntoolsets:\n  g:\n",
		"annotations":   configtest.DeclaredTool + "annotations:\n---\n{kind: toolset, name: g}\n",
		"empty toolset": configtest.DeclaredTool + "---\ntoolsets: {g: []}\n",
	} {
		cfg, err := read(t, text)
		if err != nil || len(cfg.Toolsets) != 1 || cfg.Toolsets[0].Name != "g" || len(cfg.Toolsets[0].Tools) != 0 {
			t.Errorf("%s: got %+v, %v", name, cfg, err)
		}
	}
	for _, text := range []string{
		"authRequired:\n", "scopesRequired:\n", "parameters: [{name: a, type: string, description: d, allowedValues: }]\n",
		"parameters: [{name: a, type: string, description: d, authServices: }]\n", "---\n{kind: group, tools: }\n",
	} {
		if list := wantRejected(t, configtest.DeclaredTool+text); !strings.Contains(list.Error(), "org.yaml:") {
			t.Errorf("%s: %v", text, list)
		}
	}
}

// A text with template actions and no template parameters is rejected: it would be
// sent as it is.
func TestTool_RejectsTemplateWithoutParameters(t *testing.T) {
	const source = "{kind: source, name: web, type: http, baseUrl: 'https://web.example'}\n---\n"
	statement := strings.TrimSuffix(configtest.DeclaredTool, "statement: SELECT 1\n")
	for text, ok := range map[string]bool{
		statement + `statement: "SELECT '{{.a}}'"` + "\nparameters: [{name: a, type: string, description: d}]\n":                                                          false,
		statement + "statement: SELECT {{if .a}}1{{end}}\n":                                                                                                               false,
		statement + `statement: "SELECT '{{1,2},{3,4}}', '{{'"` + "\n":                                                                                                    true,
		statement + `statement: "SELECT '{{1}}'"` + "\n":                                                                                                                  true,
		source + "{kind: tool, name: h, type: http, source: web, description: d, method: GET, path: '/{{.a}}'}\n":                                                         false,
		source + "{kind: tool, name: h, type: http, source: web, description: d, method: GET, path: '/{{.a}}', queryParams: [{name: a, type: string, description: d}]}\n": false,
		source + "{kind: tool, name: h, type: http, source: web, description: d, method: POST, path: /a, requestBody: '{\"a\": {{json .a}}}'}\n":                          false,
		source + "{kind: tool, name: h, type: http, source: web, description: d, method: POST, path: /a, requestBody: '{\"a\": {}}'}\n":                                   true,
	} {
		_, err := read(t, text)
		if err == nil != ok {
			t.Errorf("%s: accepted must be %v: %v", text, ok, err)
		}
		if err != nil && !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%s: the error does not name the parameter: %v", text, err)
		}
	}
}
