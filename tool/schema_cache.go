package tool

import (
	"encoding/json"
	"sync"

	"github.com/rolecall/rolecall/internal/argschema"
)

// A schemaCache keeps at most maxCachedSchemas schemas of at most maxCachedSize bytes. Later
// and longer ones are compiled each time.
const (
	maxCachedSchemas = 256
	maxCachedSize    = 16 << 10
)

// compiledSchemas has the schemas of this process's first tools. A program makes the same
// tools for each of its organizations.
var compiledSchemas schemaCache

// schemaCache keeps compiled schemas by their text. The zero schemaCache is empty. It is safe
// for concurrent use.
type schemaCache struct {
	mu      sync.Mutex
	schemas map[string]*argschema.Schema
}

// compile returns the compiled input, which it compiles if it is not kept. It keeps no errors.
func (c *schemaCache) compile(input json.RawMessage) (*argschema.Schema, error) {
	if schema := c.find(input); schema != nil {
		return schema, nil
	}
	schema, err := argschema.Compile(input)
	if err == nil {
		c.keep(input, schema)
	}
	return schema, err
}

// find returns the kept schema of input, or nil.
func (c *schemaCache) find(input json.RawMessage) *argschema.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schemas[string(input)]
}

// keep adds schema while there is space.
func (c *schemaCache) keep(input json.RawMessage, schema *argschema.Schema) {
	if len(input) > maxCachedSize {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.schemas) >= maxCachedSchemas {
		return
	}
	if c.schemas == nil {
		c.schemas = map[string]*argschema.Schema{}
	}
	c.schemas[string(input)] = schema
}
