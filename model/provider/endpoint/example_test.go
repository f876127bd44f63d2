package endpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// A document is sent, and the answer arrives as events.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "data: {\"text\":\"Good\"}\n\ndata: {\"text\":\" day!\"}\n\n")
	}))
	defer server.Close()
	e := endpoint.New(endpoint.Config{Name: "main", URL: server.URL})
	body, err := e.PostParts(context.Background(), []byte(`{"stream":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer body.Close()
	for event, err := range endpoint.ReadEvents(body) {
		fmt.Println(string(event.Data), err)
	}
	// Output:
	// {"text":"Good"} <nil>
	// {"text":" day!"} <nil>
}
