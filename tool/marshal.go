package tool

import "encoding/json"

// MarshalTools returns definitions as a JSON array of function tools, in order, as in OpenAI's
// chat protocol: [{"type":"function","function":{"name","description","parameters"}}].
func MarshalTools(definitions []Definition) ([]byte, error) {
	list := make([]functionTool, 0, len(definitions))
	for _, d := range definitions {
		list = append(list, functionTool{"function", functionJSON{d.Name, d.Description, d.ModelSchema()}})
	}
	return json.Marshal(list)
}

// functionTool is one element of MarshalTools.
type functionTool struct {
	Type     string       `json:"type"`
	Function functionJSON `json:"function"`
}

// functionJSON is the function of a functionTool.
type functionJSON struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}
