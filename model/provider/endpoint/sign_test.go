package endpoint_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model/provider/endpoint"
	"github.com/rolecall/rolecall/model/providertest"
)

// A request is signed when all its headers are set, with the hash of all its parts.
func TestEndpoint_SignsRequests(t *testing.T) {
	var signature string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { signature = r.Header.Get("Signature") }))
	defer server.Close()
	sign := func(r *http.Request, hash string) error {
		r.Header.Set("Signature", r.Method+" "+r.Header.Get("X-Tenant")+" "+r.Header.Get("Content-Type")+" "+hash)
		return nil
	}
	body, err := endpoint.New(endpoint.Config{URL: server.URL, Header: map[string]string{"X-Tenant": "a"}, Sign: sign}).PostParts(context.Background(), []byte(`{"a"`), []byte(`:1}`))
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	if want := "POST a application/json 015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"; signature != want {
		t.Errorf("got %q, want %q", signature, want)
	}
}

// A request that cannot be signed is not sent, and the error has no secret.
func TestEndpoint_CannotSign(t *testing.T) {
	sign := func(*http.Request, string) error { return errors.New("secret-1234 is too short") }
	_, err := endpoint.New(endpoint.Config{Name: "m", URL: "http://127.0.0.1:1", Secrets: []string{"secret-1234"}, Sign: sign}).PostParts(context.Background(), []byte(`{}`))
	providertest.WantError(t, err, errcode.InvalidConfig, false, "cannot be signed: *** is too short")
}
