package bedrock_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/model/bedrock"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// A model is asked once.
func Example() {
	m := bedrock.New(provider.Config{
		Model: "eu.amazon.nova-lite-v1:0", Region: "eu-central-1", Key: "bedrock-api-key-example",
		Client: providertest.Client(func(url, body string) string { // in place of the provider
			return `{"output": {"message": {"role": "assistant", "content": [{"text": "Good day!"}]}}, "stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 3}}`
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
