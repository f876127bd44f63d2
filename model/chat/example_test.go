package chat_test

import (
	"fmt"

	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/providertest"
)

// A client of a provider encodes the turns of a request, with names that the provider accepts.
func Example() {
	for _, turn := range chat.BuildTurns(providertest.HelloRequest()) {
		fmt.Println(turn.Role == chat.User, turn.Text)
	}
	fmt.Println(chat.ProviderName("search_flights"))
	fmt.Println(chat.ProviderName("flights.search"))
	// Output:
	// true Hello
	// search_flights
	// x__flights_search_0b0f5208ae196cc3c0d55b12e9e3781e
}
