package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// inProcessTransport is an http.RoundTripper that calls a handler in this process. Answers
// are streamed: what the handler writes is read at once, or it waits.
type inProcessTransport struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. It returns when the handler has
// sent its headers; closing the answer's body ends the handler's context and
// waits for it.
func (t inProcessTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	w := newAnswer(cancel)
	go w.serve(t.handler, serverSide(ctx, r))
	select {
	case <-w.headed:
		return w.response(r), nil
	case <-ctx.Done():
		w.Close()
		return nil, ctx.Err()
	}
}

// serverSide gives a request as a server would hand it to its handler.
func serverSide(ctx context.Context, r *http.Request) *http.Request {
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

// pipeResponse is an answer on its way: the handler's http.ResponseWriter, and the
// body that the client reads.
type pipeResponse struct {
	*io.PipeReader
	pipe   *io.PipeWriter
	cancel context.CancelFunc
	header http.Header

	once   sync.Once // sends the headers
	status int       // set before headed is closed
	sent   http.Header
	headed chan struct{}
	done   chan struct{} // closed when the handler has returned
}

func newAnswer(cancel context.CancelFunc) *pipeResponse {
	w := &pipeResponse{cancel: cancel, header: http.Header{}, headed: make(chan struct{}), done: make(chan struct{})}
	w.PipeReader, w.pipe = io.Pipe()
	return w
}

// serve runs the handler. One that panics breaks its answer off.
func (w *pipeResponse) serve(handler http.Handler, r *http.Request) {
	defer close(w.done)
	defer r.Body.Close()
	defer func() {
		broken := recover() != nil
		w.WriteHeader(http.StatusInternalServerError) // unless there was another
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

// WriteHeader implements http.ResponseWriter; the first one counts.
func (w *pipeResponse) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.headed)
	})
}

// Write implements http.ResponseWriter.
func (w *pipeResponse) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush implements http.Flusher: nothing is held back.
func (w *pipeResponse) Flush() { w.WriteHeader(http.StatusOK) }

// Close ends the handler and waits for it. It may be called twice.
func (w *pipeResponse) Close() error {
	w.cancel()
	err := w.PipeReader.Close()
	<-w.done
	return err
}

func (w *pipeResponse) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: w, ContentLength: -1, Request: r,
	}
}
