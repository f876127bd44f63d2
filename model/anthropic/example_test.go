package anthropic_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// A model is asked once.
func Example() {
	m := anthropic.New(provider.Config{
		Model: "claude-opus-4-5", Key: "sk-ant-example",
		Client: providertest.Client(func(url, body string) string { // in place of the provider
			return `{"type": "message", "content": [{"type": "text", "text": "Good day!"}], "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 3}}`
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
