package cmd

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersionCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(0, "no arguments"),
		RunE:  func(*cobra.Command, []string) error { return runVersion(c) },
	}
}

// buildVersion describes the build of this program.
type buildVersion struct {
	Version string `json:"version"`          // of the main module; "devel" if it has none
	Commit  string `json:"commit,omitempty"` // empty in a build from a downloaded module, whose version says it
	Go      string `json:"go"`
}

func runVersion(c *common) error {
	info, _ := debug.ReadBuildInfo()
	v := readVersion(info)
	if c.json {
		return printJSONLine(c.out, v)
	}
	_, err := fmt.Fprintln(c.out, "rolecall "+v.String())
	return err
}

// version returns the version of this program.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return readVersion(info).Version
}

// readVersion returns the version that the go command has recorded. info may be nil.
func readVersion(info *debug.BuildInfo) buildVersion {
	v := buildVersion{Version: "devel", Go: goruntime.Version()}
	if info == nil {
		return v
	}
	if recorded := strings.Trim(info.Main.Version, "()"); recorded != "" {
		v.Version = recorded
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

// String returns the version with its commit, if the commit is known, and the version of Go.
func (v buildVersion) String() string {
	if v.Commit == "" {
		return fmt.Sprintf("%s (%s)", v.Version, v.Go)
	}
	return fmt.Sprintf("%s (commit %s, %s)", v.Version, v.Commit, v.Go)
}
