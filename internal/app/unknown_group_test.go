package app

import (
	"strings"
	"testing"
)

// A module that cannot be made, or does not start, may provide groups of any name. They are not
// reported as unknown.
func TestApplyConfig_GroupsOfFailedModules(t *testing.T) {
	const role = "{kind: role, name: reader, toolGroups: [stocktaking]}"
	for name, c := range map[string]struct {
		module string
		want   []string
	}{
		"wrong setting": {"{kind: module, name: shop, type: fake, settings: {group: 5}}",
			[]string{`settings of module "shop": Group must be a text, not a number`}},
		"unknown type": {"{kind: module, name: shop, type: fakes}", []string{"this build has no module type"}},
		"does not start": {"{kind: module, name: shop, type: fake, settings: {group: stocktaking, fail: true}}",
			[]string{"cannot start", "org.yaml:3:41: toolGroups: tool group stocktaking is missing: it may be one of the module shop, which failed to start"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			err := f.ApplyConfig(t.Context(), f.read(c.module, role), nil)
			if err == nil || strings.Contains(err.Error(), "unknown tool group") {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %s", err, want)
				}
			}
		})
	}
}

// A module of a fixed kind has the groups of its name: others are unknown also when it failed.
func TestApplyConfig_UnknownGroupWithFailedServer(t *testing.T) {
	f := newFixture(t)
	server := "{kind: mcpServer, name: shop, command: no-such-program-anywhere}"
	err := f.ApplyConfig(t.Context(), f.read(server, "{kind: role, name: reader, toolGroups: [stocktaking]}"), nil)
	if err == nil || !strings.Contains(err.Error(), "unknown tool group stocktaking") {
		t.Errorf("got %v", err)
	}
}
