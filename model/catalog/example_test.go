package catalog_test

import (
	"fmt"

	"github.com/rolecall/rolecall/model/catalog"
)

func ExampleListProviders() {
	for _, p := range catalog.ListProviders() {
		fmt.Println(p.Type, p.KeyVariable)
	}
	// Output:
	// openai OPENAI_API_KEY
	// openai-responses OPENAI_API_KEY
	// anthropic ANTHROPIC_API_KEY
	// gemini GEMINI_API_KEY
	// bedrock AWS_BEARER_TOKEN_BEDROCK
}
