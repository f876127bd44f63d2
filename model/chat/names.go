package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/tidwall/gjson"
)

// offeredPrefix begins names that replace the original name of a tool.
const offeredPrefix = "x__"

// ProviderName returns the name under which a tool is offered to providers. A name
// that every provider accepts is kept: a letter or _, then letters, digits, _ and
// -, at most 64 characters. Any other name is replaced by one with its hash. The
// mapping is injective.
func ProviderName(name string) string {
	if isProviderName(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return offeredPrefix + namePrefix(name) + "_" + hex.EncodeToString(sum[:16])
}

// isProviderName reports whether every provider accepts name and no other name is
// replaced by it.
func isProviderName(name string) bool {
	if name == "" || len(name) > 64 || len(name) >= len(offeredPrefix) && name[:len(offeredPrefix)] == offeredPrefix {
		return false
	}
	for i := range len(name) {
		if !isNameByte(name[i], i) {
			return false
		}
	}
	return true
}

// isNameByte reports whether every provider accepts byte c at index at of a name.
func isNameByte(c byte, at int) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		return true
	case c >= '0' && c <= '9', c == '-':
		return at > 0
	}
	return false
}

// namePrefix returns the beginning of a name in valid characters, so that people
// recognize a replaced name.
func namePrefix(name string) string {
	const maxLen = 28
	text := []byte(name[:min(len(name), maxLen)])
	for i, c := range text {
		if !isNameByte(c, 1) {
			text[i] = '_'
		}
	}
	return string(text)
}

// ToolList is a list of tools in the format of one provider. It is immutable.
type ToolList struct {
	JSON     []byte            // read-only
	original map[string]string // original names by offered name, where they differ
}

// OriginalName returns the original name of the tool offered as name. A name that was
// not offered is returned unchanged; the gate decides about it. A nil ToolList offers no
// tools.
func (t *ToolList) OriginalName(name string) string {
	if t == nil {
		return name
	}
	if real, ok := t.original[name]; ok {
		return real
	}
	return name
}

// ToolCache converts lists of tools to the format of a provider and caches them. Its
// zero value uses the format of tool.MarshalTools. Safe for concurrent use.
type ToolCache struct {
	// Encode returns one tool in the format of the provider, a JSON value.
	// parameters is a JSON schema. Nil keeps the format of tool.MarshalTools.
	Encode func(name, description string, parameters []byte) []byte

	mu    sync.Mutex
	lists map[*byte]*ToolList // by the first byte of a View's JSON, which never changes
}

// maxLists is how many lists a ToolCache holds before it drops all of them.
const maxLists = 256

// EncodeTools returns the tools in wire, which tool.MarshalTools wrote, or nil if there are
// none. A list is identified by its memory: wire must never change.
func (c *ToolCache) EncodeTools(wire []byte) *ToolList {
	if len(wire) <= len("[]") {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := &wire[0]
	if t, ok := c.lists[key]; ok {
		return t
	}
	if c.lists == nil || len(c.lists) >= maxLists {
		c.lists = map[*byte]*ToolList{}
	}
	t := c.newToolList(wire)
	c.lists[key] = t
	return t
}

func (c *ToolCache) newToolList(wire []byte) *ToolList {
	t := &ToolList{original: map[string]string{}}
	var out bytes.Buffer
	gjson.ParseBytes(wire).ForEach(func(_, entry gjson.Result) bool {
		f := entry.Get("function")
		name := f.Get("name").Str
		offered := ProviderName(name)
		if offered != name {
			t.original[offered] = name
		}
		writeSeparator(&out)
		out.Write(c.encodedTool(offered, f))
		return true
	})
	if out.Len() == 0 {
		return nil
	}
	out.WriteByte(']')
	t.JSON = out.Bytes()
	if c.Encode == nil && len(t.original) == 0 {
		t.JSON = wire
	}
	return t
}

func (c *ToolCache) encodedTool(offered string, f gjson.Result) []byte {
	description, parameters := f.Get("description").Str, []byte(f.Get("parameters").Raw)
	if c.Encode != nil {
		return c.Encode(offered, description, parameters)
	}
	doc := AppendString([]byte(`{"type":"function","function":{"name":`), offered)
	doc = AppendString(append(doc, `,"description":`...), description)
	doc = append(append(doc, `,"parameters":`...), parameters...)
	return append(doc, `}}`...)
}

// writeSeparator writes what precedes the next element of a JSON list.
func writeSeparator(list *bytes.Buffer) {
	if list.Len() == 0 {
		list.WriteByte('[')
		return
	}
	list.WriteByte(',')
}
