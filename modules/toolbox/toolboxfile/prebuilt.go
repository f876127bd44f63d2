package toolboxfile

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

//go:embed prebuilt/*.yaml
var prebuilt embed.FS

// prebuiltNames are the names of the prebuilt files, sorted.
var prebuiltNames = []string{"mysql", "postgres", "sqlite"}

// PrebuiltNames returns the names of the prebuilt files, sorted.
func PrebuiltNames() []string { return slices.Clone(prebuiltNames) }

// prebuiltPrefix begins a path that stands for a prebuilt file.
const prebuiltPrefix = "prebuilt:"

// PrebuiltPath returns the path that stands for the prebuilt file of a name.
func PrebuiltPath(name string) string { return prebuiltPrefix + name }

// IsPrebuilt reports whether a path stands for a prebuilt file, which may not exist.
func IsPrebuilt(path string) bool { return strings.HasPrefix(path, prebuiltPrefix) }

// ReadPrebuilt returns the content of the prebuilt file that a path stands for. The file has
// a source and tools. They have the names, parameters and variables of Toolbox's prebuilt
// configuration. The error lists the names that exist.
func ReadPrebuilt(path string) ([]byte, error) {
	name := strings.TrimPrefix(path, prebuiltPrefix)
	if !slices.Contains(prebuiltNames, name) {
		return nil, fmt.Errorf("there is no prebuilt file %s (%s)", yamldoc.QuoteText(name), yamldoc.ListHint("there are ", prebuiltNames))
	}
	return prebuilt.ReadFile("prebuilt/" + name + ".yaml")
}
