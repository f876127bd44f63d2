package parameter_test

import (
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// A statement with one template parameter and two that are bound.
func Example() {
	ordinary := []parameter.Spec{
		{Name: "airline", Type: parameter.TypeString, Description: "Two letters", Allowed: []parameter.Literal{{Text: "/[A-Z]{2}/"}}},
		{Name: "limit", Type: parameter.TypeInteger, Description: "How many rows", Default: &parameter.Literal{Text: "10", Kind: parameter.KindNumber}},
	}
	template := []parameter.Spec{{Name: "table", Type: parameter.TypeString, Description: "Where to look", Escape: parameter.EscapeDoubleQuotes}}
	set, problems := parameter.CompileSet(parameter.Options{}, ordinary, template)
	for _, problem := range problems {
		fmt.Println(problem)
	}
	statement, err := set.StatementTemplate(`SELECT * FROM {{.table}} WHERE airline = $1 LIMIT $2`)
	if err != nil {
		fmt.Println(err)
	}

	values, _ := set.ParseArguments(json.RawMessage(`{"airline":"CY","table":"flights"}`), nil, nil)
	text, _ := statement.RenderText(values)
	fmt.Println(text, values.BindValues())
	_, err = set.ParseArguments(json.RawMessage(`{"airline":"CYX","table":"flights"}`), nil, nil)
	fmt.Println(err)
	// Output:
	// SELECT * FROM "flights" WHERE airline = $1 LIMIT $2 [CY 10]
	// invalid_arguments: unable to parse value for "airline": "CYX" is not an allowed value: want text that matches [A-Z]{2}
}
