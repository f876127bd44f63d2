package client

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// inProcessTransport is an http.RoundTripper that calls a handler in this
// process. Responses are streamed without a buffer: a write blocks until the
// client reads.
type inProcessTransport struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. It returns when the handler has sent
// its headers. Closing the response's body cancels the handler's context and
// waits for the handler. A request whose context has ended does not reach the
// handler, which may be faster than the select.
func (t inProcessTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	w := newPipeResponse(cancel)
	go w.serve(t.handler, serverRequest(ctx, r))
	select {
	case <-w.headersSent:
		return w.response(r), nil
	case <-ctx.Done():
		w.Close()
		return nil, ctx.Err()
	}
}

// serverRequest converts a client request to the form that servers pass to
// handlers.
func serverRequest(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "local"
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// pipeResponse connects a handler and a client: it is the handler's
// http.ResponseWriter and the body that the client reads.
type pipeResponse struct {
	*io.PipeReader
	pipe   *io.PipeWriter
	cancel context.CancelFunc
	header http.Header

	once        sync.Once // guards sending the headers
	status      int       // set before headersSent is closed, like sentHeader
	sentHeader  http.Header
	headersSent chan struct{} // closed when status and sentHeader are set
	done        chan struct{} // closed when the handler has returned
}

// newPipeResponse returns a response whose Close cancels the handler's context.
func newPipeResponse(cancel context.CancelFunc) *pipeResponse {
	w := &pipeResponse{cancel: cancel, header: http.Header{}, headersSent: make(chan struct{}), done: make(chan struct{})}
	w.PipeReader, w.pipe = io.Pipe()
	return w
}

// serve runs the handler. If the handler panics, the response ends with an
// error.
func (w *pipeResponse) serve(handler http.Handler, r *http.Request) {
	defer close(w.done)
	defer r.Body.Close()
	defer func() {
		broken := recover() != nil
		w.WriteHeader(http.StatusInternalServerError) // no effect if the handler has sent a status
		if broken {
			w.pipe.CloseWithError(io.ErrUnexpectedEOF)
		} else {
			w.pipe.Close()
		}
	}()
	handler.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
}

// Header implements http.ResponseWriter.
func (w *pipeResponse) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Only the first call has an
// effect.
func (w *pipeResponse) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sentHeader = status, w.header.Clone()
		close(w.headersSent)
	})
}

// Write implements http.ResponseWriter.
func (w *pipeResponse) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush implements http.Flusher. Only headers can be pending.
func (w *pipeResponse) Flush() { w.WriteHeader(http.StatusOK) }

// Close cancels the handler and waits for it. It may be called twice.
func (w *pipeResponse) Close() error {
	w.cancel()
	err := w.PipeReader.Close()
	<-w.done
	return err
}

// response returns the client's view of the response.
func (w *pipeResponse) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sentHeader, Body: w, ContentLength: -1, Request: r,
	}
}
