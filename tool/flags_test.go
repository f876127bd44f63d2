package tool_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/tool"
)

// Flags that are not set count as all. An empty list sets none.
func TestFlags_NotSetCountAsAll(t *testing.T) {
	for name, c := range map[string]struct {
		flags tool.Flags
		names []string
		json  string
	}{
		"not set":  {tool.Flags(0), []string{"untrusted", "private", "outside"}, "null"},
		"a flag":   {tool.Flags(tool.Private), []string{"untrusted", "private", "outside"}, "null"}, // not made by FlagsOf
		"none":     {tool.FlagsOf(), []string{}, "[]"},
		"in order": {tool.FlagsOf(tool.Outside, tool.Untrusted), []string{"untrusted", "outside"}, `["untrusted","outside"]`},
	} {
		doc, err := json.Marshal(c.flags)
		if !slices.Equal(c.flags.Names(), c.names) || string(doc) != c.json || err != nil || c.flags.Known() != (c.json != "null") {
			t.Errorf("%s: %v %s %v", name, c.flags.Names(), doc, err)
		}
		for _, flag := range tool.ListFlags() {
			if parsed, ok := tool.ParseFlag(flag.String()); !ok || parsed != flag || c.flags.Has(flag) != slices.Contains(c.names, flag.String()) {
				t.Errorf("%s: %s", name, flag)
			}
		}
	}
	if _, ok := tool.ParseFlag("Private"); ok || tool.Flag(8).String() != "unknown" {
		t.Error("an unknown flag has a name")
	}
}
