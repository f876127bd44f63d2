package cmd

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(0, "no arguments"),
		RunE:  func(*cobra.Command, []string) error { return versionFunc(c) },
	}
}

func versionFunc(c *common) error {
	if c.json {
		return printLine(c.out, map[string]string{"version": version(), "go": goruntime.Version()})
	}
	_, err := fmt.Fprintf(c.out, "rolecall %s (%s)\n", version(), goruntime.Version())
	return err
}

// version returns the version of the module, or else the revision it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
