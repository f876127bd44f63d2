package prompt_test

import (
	"fmt"

	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/prompt"
	"github.com/rolecall/rolecall/toolgroups"
)

// A prompt is a template of messages with the parameters of declared tools.
func Example() {
	city := parameter.Spec{Name: "city", Type: parameter.TypeString, Description: "Where to go."}
	arguments, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{city}, nil)
	if problems != nil {
		fmt.Println(problems)
		return
	}
	trip, err := prompt.NewTemplate("trip", "Plans a trip.", "1", arguments, []toolgroups.PromptMessage{{Role: "user", Text: "Plan a day in {{.city}}."}})
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := trip.Messages(map[string]string{"city": "Ulm"})
	fmt.Println(messages, err)
	// Output: [{user Plan a day in Ulm.}] <nil>
}
