package responses_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/model/openai/responses"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// A model is asked once.
func Example() {
	m := responses.New(provider.Config{
		Model: "gpt-5-mini", Key: "sk-example",
		Client: providertest.Client(func(url, body string) string { // in place of the provider
			return `{"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "Good day!"}]}], "usage": {"input_tokens": 9, "output_tokens": 3}}`
		}),
	})
	for delta, err := range m.Generate(context.Background(), providertest.HelloRequest()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(delta.Answer.Text, delta.Answer.Usage.Output)
	}
	// Output: Good day! 3
}
