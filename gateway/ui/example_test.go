package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rolecall/rolecall/gateway/ui"
)

func ExamplePageOr() {
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"routes":[]}`) })
	handler := ui.PageOr(api)

	request := httptest.NewRequest(http.MethodGet, "/", nil)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	fmt.Println(answer.Body)

	request.Header.Set("Accept", "text/html")
	answer = httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	fmt.Println(answer.Header().Get("Content-Type"))
	// Output:
	// {"routes":[]}
	// text/html; charset=utf-8
}
