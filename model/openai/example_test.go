package openai_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// A model of any server that speaks the chat completions protocol is asked once.
func Example() {
	m := openai.New(provider.Config{
		BaseURL: "http://127.0.0.1:11434/v1", Model: "llama3.2", // Ollama
		Client: providertest.Client(func(url, body string) string { // in place of the server
			return `{"choices": [{"message": {"content": "Good day!"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}`
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
