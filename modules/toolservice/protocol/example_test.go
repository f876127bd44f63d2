package protocol_test

import (
	"fmt"
	"time"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

func Example() {
	topic, err := protocol.ParseTopic("non-persistent://tg/request/joke")
	if err != nil {
		fmt.Println(err)
		return
	}
	request := protocol.Request{User: "ann", Config: `{"style":"pun"}`, Arguments: `{"topic":"llamas"}`}
	fmt.Println(topic.Subject(), string(request.Encode()))
	// Output: tg.request.joke {"user":"ann","config":"{\"style\":\"pun\"}","arguments":"{\"topic\":\"llamas\"}"}
}

// A service in any language checks a call token as VerifyToken does.
func ExampleVerifyToken() {
	const key = "rck_EXAMPLE"
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	request := protocol.Request{User: "ann", Config: "{}", Arguments: `{"topic":"llamas"}`}
	text := protocol.Token{Service: "joke-service", Role: "entertainer", Tool: "tell-joke", Expires: now.Add(time.Minute)}.SignRequest(request, key)

	token, err := protocol.VerifyToken(text, "joke-service", request, now, key)
	fmt.Println(token.Caller, token.Role, token.Tool, err)
	request.Arguments = `{"topic":"money"}`
	_, err = protocol.VerifyToken(text, "joke-service", request, now, key)
	fmt.Println(err)
	// Output:
	// ann entertainer tell-joke <nil>
	// the call token is of another service or of another request
}
