package toolboxfile

import (
	"slices"

	"github.com/rolecall/rolecall/internal/yamldoc/docset"
)

// item is a document that a Reader reads.
type item struct {
	docset.Item
	r *Reader
}

// kinds returns the kinds of Toolbox's documents in all spellings. It is the only list of
// them.
func (r *Reader) kinds() []docset.Kind {
	with := func(read func(item)) func(docset.Item) { return func(it docset.Item) { read(item{it, r}) } }
	list := []docset.Kind{
		{Name: "source", Read: with(readSource)},
		{Name: "authService", Read: with(readAuthService)},
		{Name: "tool", Read: with(readTool), Nameless: true},
		{Name: "toolset", Read: with(readToolset)},
		{Name: "group", Read: with(readGroup), Current: "toolset", Nameless: true},
		{Name: "prompt", Read: with(readPrompt)},
		{Name: "toolService", Read: with(readToolService)},

		{Name: kindResource, Read: with(readResource)},
		{Name: kindTemplate, Read: with(readTemplate)},

		// Kinds of Toolbox that are not supported.
		{Name: "embeddingModel", Hint: embeddingHint},
		{Name: "embeddingModels", Hint: embeddingHint},
	}
	for plural, current := range pluralKinds {
		i := slices.IndexFunc(list, func(k docset.Kind) bool { return k.Name == current })
		list = append(list, docset.Kind{Name: plural, Read: list[i].Read, Current: current, Nameless: list[i].Nameless})
	}
	return list
}

// pluralKinds maps the kinds of Toolbox's older v2 form to the current kinds.
var pluralKinds = map[string]string{
	"sources": "source", "authServices": "authService", "tools": "tool", "toolsets": "toolset", "prompts": "prompt",
}

const embeddingHint = "embedding models of Toolbox are not supported; leave out the document and the embeddedBy of parameters that name it"

// trustGraphSection is the section of tools in a configuration of TrustGraph. The name of an
// entry is its key there; the field name is a title, which is not used. serviceSection is the
// section of tool services.
const (
	trustGraphSection = "tool"
	serviceSection    = "tool-service"
)

// sections returns the top-level keys of Toolbox's v1 form, which has no kind, with
// the kind of the entries below each.
func sections() map[string]string {
	return map[string]string{
		"sources":         "source",
		"authServices":    "authService",
		"authSources":     "authService", // its older name
		"tools":           "tool",
		trustGraphSection: "tool",
		serviceSection:    "toolService",
		"toolsets":        "toolset",
		"prompts":         "prompt",
		"embeddingModels": "embeddingModel",
	}
}
