package providertest_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/rolecall/rolecall/model/providertest"
)

// Client stands in for a provider in a test, without a server.
func ExampleClient() {
	client := providertest.Client(func(url, body string) string { return "asked " + body + " at " + url })
	response, err := client.Post("https://api.example.com/v1/chat", "application/json", strings.NewReader(`{"model":"m"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	fmt.Println(string(text), err)
	// Output: asked {"model":"m"} at https://api.example.com/v1/chat <nil>
}
