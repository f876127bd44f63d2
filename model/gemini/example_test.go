package gemini_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// A model is asked once.
func Example() {
	m := gemini.New(provider.Config{
		Model: "gemini-2.5-flash", Key: "AIza-example",
		Client: providertest.Client(func(url, body string) string { // in place of the provider
			return `{"candidates": [{"content": {"role": "model", "parts": [{"text": "Good day!"}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3}}`
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
