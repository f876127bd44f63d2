package tool

import "encoding/json"

// MarshalTools returns definitions as a JSON array of FunctionTools, in order.
func MarshalTools(definitions []Definition) ([]byte, error) {
	list := make([]FunctionTool, 0, len(definitions))
	for _, d := range definitions {
		list = append(list, d.FunctionTool())
	}
	return json.Marshal(list)
}

// FunctionTool is a tool as models read it, in the shape of OpenAI's chat protocol:
// {"type":"function","function":{"name","description","parameters"}}.
type FunctionTool struct {
	Type     string   `json:"type"` // function
	Function Function `json:"function"`
}

// Function is the function of a FunctionTool.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON schema of type object
}

// FunctionTool returns the tool as models read it.
func (d *Definition) FunctionTool() FunctionTool {
	return FunctionTool{"function", Function{d.Name, d.Description, d.ModelSchema()}}
}
