// Package neterror says in plain words why an HTTP request got no answer:
//
//	answer, err := client.Do(request)
//	if err != nil {
//		return neterror.Explain(err) // 127.0.0.1:7464 refuses connections
//	}
//
// The errors of net/http name the method, the whole URL and the steps of Go's packages.
// The package does not decide what can be done about an error, or whether to try again.
package neterror

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
)

// Explain returns the error of an HTTP request in plain words, with the host and without
// the path and the query. errors.Is and errors.AsType find what they find in err. An error
// that is not of net/http, and the end of a context, are returned as they are.
func Explain(err error) error { return ExplainHost(err, "") }

// ExplainHost is Explain for a host of which the URL does not have the name. "" takes it from
// the URL.
func ExplainHost(err error, host string) error {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if host == "" {
		host = hostOf(request.URL)
	}
	return &plainError{describe(host, request), err}
}

// hostOf returns the host of a URL, with its port, or an invalid URL itself.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	return u.Host
}

// describe returns the text for a request to a host.
func describe(host string, err *url.Error) string {
	unknown, lookup := errors.AsType[*net.DNSError](err)
	switch {
	case err.Timeout():
		return host + " did not answer in time"
	case lookup && unknown.IsNotFound:
		return "there is no host " + unknown.Name
	case lookup:
		return "the address of " + unknown.Name + " cannot be found: " + unknown.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refuses connections"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return host + " closed the connection without an answer"
	case errors.Is(err, http.ErrSchemeMismatch):
		return host + " answers over http, not https"
	}
	return "connect to " + host + ": " + innermost(err.Err).Error()
}

// innermost returns the cause of an error of a connection, without the steps that led to
// it, which repeat the address.
func innermost(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	return err
}

// plainError is an error with another text.
type plainError struct {
	text string
	err  error
}

// Error implements error.
func (e *plainError) Error() string { return e.text }

// Unwrap returns the error that is explained.
func (e *plainError) Unwrap() error { return e.err }
