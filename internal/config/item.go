package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// Item is one document that the operator has applied, in addition to the files. Its text is
// YAML or JSON. Without the field kind it is a descriptor of TrustGraph.
type Item struct {
	Kind, Name string // as CheckItem accepts them
	Text       string
}

// Bounds of applied items.
const (
	MaxItems    = 1000
	MaxItemText = 64 << 10 // bytes of one text
)

// Path returns the name of the item in errors.
func (i Item) Path() string { return itemPrefix + i.Kind + "/" + i.Name }

const itemPrefix = "applied:"

// IsItemPath reports whether the file of an error belongs to an item.
func IsItemPath(file string) bool { return strings.HasPrefix(file, itemPrefix) }

// ItemKinds returns the kinds of documents that can be applied, sorted. They name no file, no
// address, no program and no password of this machine. An item of these kinds does not change
// the meaning of a document in a file.
func ItemKinds() []string { return []string{"prompt", "tool", "toolService", "toolset"} }

// trustGraphKinds maps keys of TrustGraph's configuration to kinds.
var trustGraphKinds = map[string]string{"tool-service": "toolService"}

// FindItemKind returns the kind of an item for a kind as it may be written. This is our name, or a
// key of TrustGraph's configuration. It returns an error for another text.
func FindItemKind(written string) (string, error) {
	if kind, ok := trustGraphKinds[written]; ok {
		return kind, nil
	}
	if slices.Contains(ItemKinds(), written) {
		return written, nil
	}
	return "", fmt.Errorf("kind %s cannot be applied; kinds are %s, and tool-service of TrustGraph. Other documents belong into a file of -f",
		yamldoc.QuoteText(written), strings.Join(ItemKinds(), ", "))
}

// CheckItem returns what is wrong with the name or the size of an item.
func CheckItem(i Item) error {
	switch problem := yamldoc.NameProblem(i.Name); {
	case i.Name == "":
		return errors.New("the item has no name")
	case problem != "":
		return fmt.Errorf("the name %s of the item %s", yamldoc.QuoteText(i.Name), problem)
	case len(i.Text) > MaxItemText:
		return fmt.Errorf("the item has %d bytes; at most %d are allowed", len(i.Text), MaxItemText)
	}
	return nil
}

// UsesVariables reports whether a value of an item has a variable, ${NAME}, however it is written: a
// document has escapes.
func UsesVariables(text string) bool {
	for doc, err := range yamldoc.NewFileText(yamldoc.File{Data: []byte(text)}).ParseDocuments() {
		if err != nil {
			return strings.Contains(text, "${") // reading the item fails, too
		}
		if yamldoc.HasVariable(doc) {
			return true
		}
	}
	return false
}

// WithItems returns the configuration of the files of c, read again, and items. The error is nil
// or a yamldoc.Errors; those with the file Item.Path are mistakes of that item. It does not change
// c. The result has the Files of c.
func (c *Config) WithItems(items []Item, env yamldoc.Env) (*Config, error) {
	documents, open := recordedFiles(c.Files)
	r := newReader(env, open)
	return r.read(documents, items)
}

// readItems reads items, which have the content of no file.
func (r *reader) readItems(items []Item) {
	read := r.docs.ReadSecret
	r.docs.ReadSecret = nil
	for _, i := range items {
		r.readItem(i)
	}
	r.docs.ReadSecret = read
	r.config.Items = items
}

// readItem reads the document of an item.
func (r *reader) readItem(i Item) {
	src := yamldoc.NewFileText(yamldoc.File{Path: i.Path(), Data: []byte(i.Text)})
	first := yamldoc.Pos{File: i.Path(), Line: 1, Column: 1}
	n := 0
	for doc, err := range src.ParseDocuments() {
		if err != nil {
			r.docs.AddErrors(err)
			return
		}
		if n++; n > 1 {
			break
		}
		d, root := r.docs.NewDocument(src), doc.Content[0]
		if d.CheckStructure(root) {
			r.readItemDocument(i, d.ValueOf(root, ""), d.ValueOf(nameNode(i.Name), "name"))
		}
	}
	if n != 1 {
		r.docs.AddErrors(src.ErrorAt(first, "", "an item is one document", "apply each document by itself"))
	}
}

// nameNode returns the name of an item as a key above its document.
func nameNode(name string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: 1, Column: 1}
}

// readItemDocument reads the document of an item. name is its name.
func (r *reader) readItemDocument(i Item, root, name yamldoc.Value) {
	if !root.IsMapping() {
		root.AddTypeError("a mapping", "")
		return
	}
	at, ok := root.FindField("kind")
	if !ok {
		r.toolbox.ReadEntry(i.Kind, name, root)
		return
	}
	if at.Node.Value != i.Kind {
		at.AddError("is not "+i.Kind+", the kind that it is applied as", "")
		return
	}
	if at, ok := root.FindField("of"); ok && i.Kind == "tool" {
		at.AddError("labels of a tool of a server belong into a file of -f", "")
		return
	}
	if at, ok := root.FindField("name"); ok && at.Node.Value != i.Name {
		at.AddError("is not "+yamldoc.QuoteText(i.Name)+", the name that it is applied as", "")
		return
	}
	r.set.ReadDocument(root)
}

// FindDocument reports whether a document of a kind that can be applied has a name. It returns its position.
func (c *Config) FindDocument(kind, name string) (at yamldoc.Pos, found bool) {
	switch kind {
	case "prompt":
		return findNamed(c.Prompts, func(p toolboxfile.Prompt) (string, yamldoc.Pos) { return p.Name, p.Pos }, name)
	case "tool":
		return findNamed(c.Tools, func(t toolboxfile.DeclaredTool) (string, yamldoc.Pos) { return t.Name, t.Pos }, name)
	case "toolService":
		return findNamed(c.ToolServices, func(s toolboxfile.ToolService) (string, yamldoc.Pos) { return s.Name, s.Pos }, name)
	case "toolset":
		return findNamed(c.Toolsets, func(t toolboxfile.Toolset) (string, yamldoc.Pos) { return t.Name, t.Pos }, name)
	}
	return yamldoc.Pos{}, false
}

// findNamed returns the position of the entry with a name.
func findNamed[T any](list []T, describe func(T) (string, yamldoc.Pos), name string) (yamldoc.Pos, bool) {
	for _, one := range list {
		if known, at := describe(one); known == name {
			return at, true
		}
	}
	return yamldoc.Pos{}, false
}
