package neterror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/neterror"
)

func TestExplain_Texts(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, test := range []struct {
		cause error
		want  string
	}{
		{dial(syscall.ECONNREFUSED), "gw.example.com refuses connections"},
		{dial(&net.DNSError{Err: "no such host", Name: "gw.example.com", IsNotFound: true}), "there is no host gw.example.com"},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "gw.example.com"}), "the address of gw.example.com cannot be found: server misbehaving"},
		{dial(syscall.EHOSTUNREACH), "connect to gw.example.com: no route to host"},
		{io.EOF, "gw.example.com closed the connection without an answer"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "gw.example.com closed the connection without an answer"},
		{context.DeadlineExceeded, "gw.example.com did not answer in time"},
		{http.ErrSchemeMismatch, "gw.example.com answers over http, not https"},
		{errors.New("stopped after 10 redirects"), "connect to gw.example.com: stopped after 10 redirects"},
	} {
		err := fmt.Errorf("send: %w", &url.Error{Op: "Get", URL: "https://me:secret@gw.example.com/api/v1/tasks?token=t", Err: test.cause})
		got := neterror.Explain(err)
		if got.Error() != test.want || !errors.Is(got, test.cause) {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestExplain_KeepsOtherErrors(t *testing.T) {
	other := errors.New("other")
	if got := neterror.Explain(other); got != other {
		t.Errorf("got %v", got)
	}
	if got := neterror.Explain(nil); got != nil {
		t.Errorf("got %v", got)
	}
	if got := neterror.Explain(&url.Error{Op: "Get", URL: "http://x", Err: context.Canceled}); got != context.Canceled {
		t.Errorf("got %v", got)
	}
}

// The text has one address, whatever the system says.
func TestExplain_RefusedConnection(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	_, err := http.Get(closed.URL + "/path")
	host := strings.TrimPrefix(closed.URL, "http://")
	if got := neterror.Explain(err); got.Error() != host+" refuses connections" {
		t.Errorf("got %v", got)
	}
}
