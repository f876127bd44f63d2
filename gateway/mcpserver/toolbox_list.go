package mcpserver

import (
	"bytes"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// Names of what a listing says of a tool's auth services: before 2026-07-28 and
// since.
var (
	authInvoke = [...]string{"toolbox/authInvoke", "com.google.cloud/authInvoke"}
	authParam  = [...]string{"toolbox/authParam", "com.google.cloud/authParam"}
)

// authMeta says which services a client has to bring tokens of: for the call,
// and for the parameters that are claims. Both spellings are there, as clients
// of either version read but their own.
func authMeta(need *tool.Auth) sdk.Meta {
	if need == nil {
		return nil
	}
	meta := sdk.Meta{}
	for i := range authInvoke {
		if len(need.AnyOf) > 0 {
			meta[authInvoke[i]] = need.AnyOf
		}
		if len(need.Parameters) > 0 {
			meta[authParam[i]] = need.Parameters
		}
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}

// toolboxLists gives the results of tools/list for clients of Toolbox, who read
// schemas in which a property has one type: with sessions, and without, where
// there are the tools that take secure arguments too.
func (s *Server) toolboxLists(l *listing) (old, new []byte) {
	l.once.Do(func() {
		plain, all := []json.RawMessage{}, []json.RawMessage{}
		for _, d := range l.within {
			described := simply(d)
			if !secure(d) {
				plain = append(plain, described)
			}
			all = append(all, described)
		}
		emptyOld, emptyNew := s.serialised([]*sdk.Tool{})
		l.toolboxOld, l.toolboxNew = filled(emptyOld, plain), filled(emptyNew, all)
	})
	return l.toolboxOld, l.toolboxNew
}

// filled puts tools into the result of a list that has none.
func filled(result []byte, tools []json.RawMessage) []byte {
	list := append([]byte(`"tools":[`), bytes.Join(byteSlices(tools), []byte(","))...)
	return bytes.Replace(result, []byte(`"tools":[]`), append(list, ']'), 1)
}

func byteSlices(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

// simply words a tool for clients of Toolbox.
func simply(d tool.Definition) json.RawMessage {
	described := described(d)
	if d.Declared == nil {
		described.InputSchema = oneType(described.InputSchema.(json.RawMessage))
		return marshal(described)
	}
	text := marshal(described)
	if schema := d.Declared.SecureSchema(); len(schema) > 0 {
		text = append(text[:len(text)-1], `,"secureInputSchema":`...)
		text = append(append(text, schema...), '}')
	}
	return text
}

// oneType gives a schema in which every type that is a list is its first that
// is not null: what fits it fits the schema.
func oneType(schema json.RawMessage) json.RawMessage {
	var doc any
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&doc) != nil || !narrow(doc) {
		return schema
	}
	return marshal(doc)
}

// narrow does so in place; false when there was nothing to do. Below properties
// stand names, elsewhere keywords.
func narrow(doc any) (changed bool) {
	switch doc := doc.(type) {
	case []any:
		for _, v := range doc {
			changed = narrow(v) || changed
		}
	case map[string]any:
		if list, ok := doc["type"].([]any); ok {
			doc["type"], changed = firstType(list), true
		}
		for name, v := range doc {
			properties, ok := v.(map[string]any)
			if name != "properties" || !ok {
				changed = narrow(v) || changed
				continue
			}
			for _, p := range properties {
				changed = narrow(p) || changed
			}
		}
	}
	return changed
}

func firstType(list []any) any {
	for _, kind := range list {
		if kind != "null" {
			return kind
		}
	}
	return "null"
}

// listFor gives the result of tools/list for a request.
func (s *Server) listFor(d *clientScope, q *request, alone bool) []byte {
	list := s.toolListFor(d)
	switch {
	case alone && q.hasSecureExt:
		_, text := s.toolboxLists(list)
		return text
	case q.noSession:
		text, _ := s.toolboxLists(list)
		return text
	}
	return cond(alone, list.new, list.old)
}
