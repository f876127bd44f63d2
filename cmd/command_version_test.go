package cmd

import (
	goruntime "runtime"
	"runtime/debug"
	"testing"
)

// version names the module version and the commit, as far as the go command recorded them.
func TestVersion_OfBuildInfo(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"go install of a tag", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3 ("},
		{"release file", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{commit}}, "v1.2.3 (commit 0123456789abcdef, "},
		{"go run", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "devel ("},
		{"no module", &debug.BuildInfo{}, "devel ("},
		{"no information", nil, "devel ("},
	} {
		if got, want := readVersion(tt.info).String(), tt.want+goruntime.Version()+")"; got != want {
			t.Errorf("%s: got %q, want %q", tt.name, got, want)
		}
	}
}
