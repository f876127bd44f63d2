package mcpserver

import (
	"bytes"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// Keys in a tool's _meta that name its auth services: before 2026-07-28 and since.
var (
	authInvoke = [...]string{"toolbox/authInvoke", "com.google.cloud/authInvoke"}
	authParam  = [...]string{"toolbox/authParam", "com.google.cloud/authParam"}
)

// authMeta returns the auth services whose tokens a client must send. It
// returns the services of the call, and the services of parameters that are
// filled from claims. It uses both the old and the new keys, since clients read
// only the keys of their version.
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

// toolboxLists returns the encoded results of tools/list for clients of MCP
// Toolbox, whose parsers expect one type per property. The stateless list also
// has the tools that take secure arguments.
func (s *Server) toolboxLists(l *listing) (sessionJSON, statelessJSON []byte) {
	l.once.Do(func() {
		withoutSecure, all := []json.RawMessage{}, []json.RawMessage{}
		for _, d := range l.definitions {
			described := describeForToolbox(d)
			if !takesSecureArgs(d) {
				withoutSecure = append(withoutSecure, described)
			}
			all = append(all, described)
		}
		emptySession, emptyStateless := s.encodeList([]*sdk.Tool{}, []*sdk.Tool{})
		l.toolboxSessionJSON, l.toolboxStatelessJSON = withTools(emptySession, withoutSecure), withTools(emptyStateless, all)
	})
	return l.toolboxSessionJSON, l.toolboxStatelessJSON
}

// withTools inserts encoded tools into an encoded result with an empty list.
func withTools(result []byte, tools []json.RawMessage) []byte {
	list := append([]byte(`"tools":[`), bytes.Join(byteSlices(tools), []byte(","))...)
	return bytes.Replace(result, []byte(`"tools":[]`), append(list, ']'), 1)
}

// byteSlices converts a list for bytes.Join.
func byteSlices(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

// describeForToolbox returns a tool's description for clients of MCP Toolbox.
func describeForToolbox(d tool.Definition) json.RawMessage {
	described := describeTool(d)
	if d.Declared == nil {
		described.InputSchema = withSingleTypes(described.InputSchema.(json.RawMessage))
		return marshal(described)
	}
	text := marshal(described)
	if schema := d.Declared.SecureSchema(); len(schema) > 0 {
		text = append(text[:len(text)-1], `,"secureInputSchema":`...)
		text = append(append(text, schema...), '}')
	}
	return text
}

// withSingleTypes returns a schema in which every list of types is replaced by
// its first type other than null. Values that match the result also match the
// original.
func withSingleTypes(schema json.RawMessage) json.RawMessage {
	var doc any
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&doc) != nil || !narrowTypes(doc) {
		return schema
	}
	return marshal(doc)
}

// narrowTypes replaces the lists of types in place and reports whether there
// were any. The keys below "properties" are names of properties, not keywords.
func narrowTypes(doc any) (changed bool) {
	switch doc := doc.(type) {
	case []any:
		for _, v := range doc {
			changed = narrowTypes(v) || changed
		}
	case map[string]any:
		if list, ok := doc["type"].([]any); ok {
			doc["type"], changed = firstType(list), true
		}
		for name, v := range doc {
			properties, ok := v.(map[string]any)
			if name != "properties" || !ok {
				changed = narrowTypes(v) || changed
				continue
			}
			for _, p := range properties {
				changed = narrowTypes(p) || changed
			}
		}
	}
	return changed
}

// firstType returns the first type other than null.
func firstType(list []any) any {
	for _, kind := range list {
		if kind != "null" {
			return kind
		}
	}
	return "null"
}

// encodedListFor returns the encoded result of tools/list for a request.
func (s *Server) encodedListFor(sc *clientScope, q *request, stateless bool) []byte {
	list := s.toolListFor(sc)
	switch {
	case stateless && q.hasSecureExt:
		_, text := s.toolboxLists(list)
		return text
	case q.sessionless:
		text, _ := s.toolboxLists(list)
		return text
	}
	return ifElse(stateless, list.statelessJSON, list.sessionJSON)
}
