package toolbox_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox"
)

// A tool on a readOnly source cannot use a method that changes data.
func TestRequest_ReadOnlySourceRejectsWritingMethod(t *testing.T) {
	for method, ok := range map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "POST": false, "PUT": false, "PATCH": false, "DELETE": false} {
		c, err := read(`{kind: source, name: api, type: http, baseUrl: "https://example.com", readOnly: true}` +
			"\n---\n{kind: tool, name: do, type: http, source: api, description: d, path: /a, method: " + method + "}")
		if err == nil {
			_, err = toolbox.New(toolbox.Config{Source: c.Sources[0], Tools: c.Tools, Pools: new(toolbox.Pools)})
		}
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "readOnly") {
			t.Errorf("%s: %v", method, err)
		}
	}
}
