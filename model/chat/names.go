package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/tidwall/gjson"
)

// offeredPrefix begins the offered names that stand for others.
const offeredPrefix = "x__"

// ProviderName gives the name a tool has at a provider: its own when every provider
// takes it (a letter or _, then letters, digits, _ and -, at most 64), else
// one made from its digest. No two names are offered as one.
func ProviderName(name string) string {
	if fits(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return offeredPrefix + readable(name) + "_" + hex.EncodeToString(sum[:16])
}

func fits(name string) bool {
	if name == "" || len(name) > 64 || len(name) >= len(offeredPrefix) && name[:len(offeredPrefix)] == offeredPrefix {
		return false
	}
	for i := range len(name) {
		if !validNameByte(name[i], i) {
			return false
		}
	}
	return true
}

// validNameByte says whether every provider takes a byte at a place of a name.
func validNameByte(c byte, at int) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		return true
	case c >= '0' && c <= '9', c == '-':
		return at > 0
	}
	return false
}

// readable gives the beginning of a name, so that people know it again.
func readable(name string) string {
	const most = 28
	text := []byte(name[:min(len(name), most)])
	for i, c := range text {
		if !validNameByte(c, 1) {
			text[i] = '_'
		}
	}
	return string(text)
}

// Tools is a list of tools as one provider reads it.
type Tools struct {
	JSON []byte            // do not change
	real map[string]string // names by those offered, where they differ
}

// OriginalName gives the name of the tool offered as name. A name that was not
// offered stays what it is, which the gate knows or refuses. Nil Tools offer
// none.
func (t *Tools) OriginalName(name string) string {
	if t == nil {
		return name
	}
	if real, ok := t.real[name]; ok {
		return real
	}
	return name
}

// ToolCache keeps lists of tools in a provider's form. Its zero value with an
// Encode is ready; safe for concurrent use.
type ToolCache struct {
	// Encode gives the wire form of one tool, a JSON value; nil is that of
	// tool.MarshalTools. parameters is a JSON schema.
	Encode func(name, description string, parameters []byte) []byte

	mu    sync.Mutex
	lists map[*byte]*Tools // by the ready bytes of a View, which never change
}

// maxLists bounds what a Toolbox keeps; past it, it begins anew.
const maxLists = 256

// Get gives the tools that wire holds in the form of tool.MarshalTools; nil when it
// holds none. Each list is converted once.
func (b *ToolCache) Get(wire []byte) *Tools {
	if len(wire) <= len("[]") {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := &wire[0]
	if t, ok := b.lists[key]; ok {
		return t
	}
	if b.lists == nil || len(b.lists) >= maxLists {
		b.lists = map[*byte]*Tools{}
	}
	t := b.convert(wire)
	b.lists[key] = t
	return t
}

func (b *ToolCache) convert(wire []byte) *Tools {
	t := &Tools{real: map[string]string{}}
	var out bytes.Buffer
	gjson.ParseBytes(wire).ForEach(func(_, entry gjson.Result) bool {
		f := entry.Get("function")
		name := f.Get("name").Str
		offered := ProviderName(name)
		if offered != name {
			t.real[offered] = name
		}
		separate(&out)
		out.Write(b.encoded(offered, f))
		return true
	})
	if out.Len() == 0 {
		return nil
	}
	out.WriteByte(']')
	t.JSON = out.Bytes()
	if b.Encode == nil && len(t.real) == 0 {
		t.JSON = wire
	}
	return t
}

func (b *ToolCache) encoded(offered string, f gjson.Result) []byte {
	description, parameters := f.Get("description").Str, []byte(f.Get("parameters").Raw)
	if b.Encode != nil {
		return b.Encode(offered, description, parameters)
	}
	doc := AppendString([]byte(`{"type":"function","function":{"name":`), offered)
	doc = AppendString(append(doc, `,"description":`...), description)
	doc = append(append(doc, `,"parameters":`...), parameters...)
	return append(doc, `}}`...)
}

func separate(list *bytes.Buffer) {
	if list.Len() == 0 {
		list.WriteByte('[')
		return
	}
	list.WriteByte(',')
}
